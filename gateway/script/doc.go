// Package script holds a gateway to the protocol's letter: a script says what a client sends and, message for message,
// what the gateway has to answer.
//
// Start at [RunFiles], which does what a command line wants, or at [Parse] and [Run] for one script. The format is one
// step a line; README.md in this folder has it with examples. In short:
//
//	# A comment. The first block of them says what the script shows.
//	connect [turns=agent] [as b] [origin=https://x] [protocol=vela.v2] [refused=403]
//	resume [as b] token=t after=n  take a session of version 2 up again, with values that were given these names
//	> text                   send a text message, byte for byte
//	>empty                   send an empty text message
//	>binary 00ff10           send a binary message
//	>binary hello.wav [fast] send a WAV file as binary messages
//	>repeat 5 text           send a text message five times
//	>size 1048577            send a session.start of so many bytes
//	>frame c1 80 'text'      put bytes on the wire that need not be WebSocket frames
//	>wav hello.wav [fast]    send a WAV file as input_audio.append, at the speed of speech or as fast as is taken
//	< {"type":"error", …}    the next message: the same JSON value, placeholders aside
//	<< text                  the next message: the same bytes
//	< ... until {…}          skip everything up to and with this message
//	pass {…}                 from here on such messages may come at any place
//	within 500ms             how long each expectation from here on may take; 2 s at the start
//	silent 300ms             nothing may arrive for so long
//	wait 100ms               let time pass
//	closed [1009]            the gateway closes, with this code
//	close                    close from our side, with the handshake
//	drop                     cut the connection
//	http GET /healthz 200 ok a plain request, the status, and words that the answer contains
//
// With several connections a step begins with the name of one: "b> …", "b< …", "b: silent 300ms". A script without any
// connect begins with one connection that has no name.
//
// In an expectation, a string that is one of these stands for any value of its kind: <any>, <text>, <number>, <uuid>,
// <none> for a field that must not be there, and <~words> for a text that contains the words. <id:uuid> also gives the value a name; wherever that name stands
// again the value must be the same, and where <!id> stands it must be another. Fields that are not named must not be
// there, unless the object has the field "...". In version 2, seq and ts are compared where they are named; that no number
// is left out and none comes twice is seen to in any case.
//
// [FromJournal] makes a script of a session that was recorded.
//
// Everything runs in real time, against a real gateway. No function of the package leaves a goroutine behind.
package script
