// Package sherpa recognises speech in this process with sherpa-onnx, by a model in a folder: no account and no network, and with
// a good model far better ears than those of the package pocketsphinx.
//
// Start at [New], which loads the model, and [Recognizer.Transcribe], which takes the audio of one utterance. A streaming model
// yields partial transcripts while it is spoken; any other hears an utterance when it is over, in parts of half a minute at most.
// [Available] says beforehand, and cheaply, whether that can work here.
//
// The files go by idea: model.go for what a folder holds, onnx.go for what a model says of itself, recognizer.go for what happens
// to the audio. The library is touched only by library.go, which is compiled on Linux with cgo and the build tag sherpa; other
// builds get missing.go, and [New] says so.
package sherpa
