// Package midi listens to MIDI devices, as the kernel has them: as files that bytes can be read from.
//
// Start at [Folder], which lists the devices, opens them, and notices when one is plugged in or out. [Reader] makes
// messages of bytes, and message.go signals of messages. A named pipe is a device as any other, for programs that play.
package midi

// Reader cuts a stream of bytes into the messages of channels (MIDI 1.0 Detailed Specification 4.2). Bytes may come in any
// portions; system messages, of any length, are skipped. The zero value is ready.
type Reader struct {
	message [3]byte // its status is 0 while data belong to no channel
	have    int     // data bytes
}

// Feed takes the next byte, and returns the message that it completes, or nil. The message begins with its status, even
// where the sender has left that out, and is valid until the next call.
func (r *Reader) Feed(b byte) []byte {
	switch {
	case b >= 0xf8: // real time: it may stand between any two bytes, and changes nothing
	case b >= 0xf0: // to all channels: its data are skipped, and a status has to follow before the next of a channel
		r.message[0], r.have = 0, 0
	case b >= 0x80: // whatever was not complete is dropped
		r.message[0], r.have = b, 0
	case r.message[0] != 0:
		r.have++
		r.message[r.have] = b
		if r.have == dataBytes(r.message[0]) {
			r.have = 0
			return r.message[:1+dataBytes(r.message[0])]
		}
	}
	return nil
}

// dataBytes is how many follow a channel's status.
func dataBytes(status byte) int {
	switch status & 0xf0 {
	case programChange, channelPressure:
		return 1
	}
	return 2
}
