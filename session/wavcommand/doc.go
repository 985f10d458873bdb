// Package wavcommand speaks with any command that reads text and writes a WAV file: espeak-ng, a local Piper, a script of one's own.
//
// Start at [New] and [Synthesizer.Synthesize]. Each sentence is a process of its own, in a process group of its own, which gets the text on standard
// input, never among its arguments, where everybody on the machine could read it. The sound is passed on while it is written. When the sentence ends,
// however it ends, the whole group is killed and waited for.
//
// How flite is called says package flite.
package wavcommand
