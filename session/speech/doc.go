// Package speech holds what speech engines, sessions and peers share about sound: samples, rates, WAV files, recognised text, and text to be spoken.
//
// Inside a session sound is mono PCM16 at [Rate], as []int16. Around it stand the conversions:
//
//   - [Samples] and [Bytes] go between samples and the little-endian bytes of the wire, [Duration] says how long they last;
//   - [Resampler] changes the rate of a stream, chunk by chunk, [Resample] that of a whole clip;
//   - [ReadWAV] and [WriteWAV] read and write WAV files;
//   - [Level] tells how loud a piece is;
//   - [EnergyDetector] tells speech from silence, frame by frame, and [Endpointer] where it begins and ends, whoever says so;
//   - [Transcript] is what a recogniser says it heard, [Chunk] a piece of what a synthesizer says;
//   - [StreamPCM] and [StreamWAV] read such pieces while they arrive;
//   - [Sentences] cuts an answer into what is spoken in one go while it is written, and [Spoken] says how a text is spoken.
//
// How English is said stands in tables of rules, tried from the first to the last wherever a word begins (spoken.go): markup.go for links, code and
// emphasis, names.go for files and hosts, dates.go, figures.go for all other numbers, and rules.go for abbreviations and single words. Where a sentence
// ends stands in ends.go, and words.go has the vocabulary of both. testdata/sentences.txt shows what comes of it, and is read by a person.
//
// Nothing here starts a goroutine, opens a file or reads a clock. A [Resampler], a detector and an [Endpointer] belong to one goroutine at a time; the functions may be
// called from any.
package speech
