// Package opus is the codec Opus (RFC 6716) for speech, by libopus.
//
// Start at [New], which gives a [speech.Codec]. The library is touched only by libopus.go, which is compiled with cgo and
// the build tag opus; other builds get missing.go, and [New] says so.
package opus

import "errors"

// ErrNotBuilt comes from [New] in a program that was built without the library.
var ErrNotBuilt = errors.New("opus: libopus is not in this build: install libopus-dev and pkg-config, then build with " +
	"CGO_ENABLED=1 and -tags 'opus nolibopusfile'")

// ErrPacket is wrapped by the error of decoding what is no Opus packet.
var ErrPacket = errors.New("opus: no Opus packet")
