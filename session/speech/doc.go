// Package speech holds what speech engines, sessions and peers share about sound: samples, rates, WAV files, recognised text.
//
// Inside a session sound is mono PCM16 at [Rate], as []int16. Around it stand the conversions:
//
//   - [Samples] and [Bytes] go between samples and the little-endian bytes of the wire, [Duration] says how long they last;
//   - [Resampler] changes the rate of a stream, chunk by chunk, [Resample] that of a whole clip;
//   - [ReadWAV] and [WriteWAV] read and write WAV files;
//   - [Level] tells how loud a piece is;
//   - [Transcript] is what a recogniser says it heard.
//
// Nothing here starts a goroutine, opens a file or reads a clock. A [Resampler] belongs to one goroutine at a time; the functions may be
// called from any.
package speech
