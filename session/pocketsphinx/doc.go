// Package pocketsphinx recognises US English speech in this process with CMU PocketSphinx: no account, no network, no download.
//
// Start at [New], which loads one decoder, and [Recognizer.Transcribe], which takes the audio of one utterance as an iterator and yields
// partial transcripts followed by the final one. One decoder serves one utterance at a time; more are loaded when they are needed, up to
// [Config.Decoders], and stay. [Available] says beforehand, and cheaply, whether local recognition can work here.
//
// A [Speaker] does the same for one person, and gets better at it.
//
// The files go by idea: config.go for settings, model.go for where the model lies, pool.go for who holds which decoder, utterance.go for
// what happens to the audio of one utterance, speaker.go for what is remembered of a voice, text.go for what becomes of the words. The library itself is
// touched only by library.go, which is compiled with cgo and the build tag pocketsphinx; other builds get missing.go, and [New] says so.
//
// It is a recogniser for commands and clear speech, not for dictation: expect one word in eight wrong on clean synthetic voices, one in ten
// from a known one, and one in three where people read aloud.
package pocketsphinx
