// Package silero tells speech from everything else with Silero VAD, version 5, on ONNX Runtime, in this process.
//
// Start at [New], which loads the library and the model once, and [Engine.Stream], which makes a detector of one stream of
// sound: it holds a kilobyte. [Find] says beforehand, and cheaply, whether both files are there.
//
// The library is opened while the program runs, so no build needs it, and without it the rest of the program works. model.go
// is the only file that touches it, and is compiled with cgo; other builds get missing.go, and [New] says so. files.go says
// where the files are looked for.
//
// The model is Silero Team's (github.com/snakers4/silero-vad, MIT): it takes 512 samples at 16 kHz with the 64 before
// them, and what it returned of its state the last time.
package silero
