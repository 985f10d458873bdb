package midi

import (
	"encoding/json"

	"vela/protocol/signal"
)

// The upper four bits of a status; the lower ones are the channel.
const (
	noteOff         = 0x80
	noteOn          = 0x90
	controlChange   = 0xb0
	programChange   = 0xc0
	channelPressure = 0xd0
	pitchBend       = 0xe0
)

// Payloads of the signals, whose types are midi.note_on and so on. Channels count from 1, all else from 0.
type (
	note struct {
		Channel  int   `json:"channel"`
		Note     int   `json:"note"`
		Velocity int   `json:"velocity"`
		Raw      []int `json:"raw"` // all bytes of the message
	}
	control struct {
		Channel    int   `json:"channel"`
		Controller int   `json:"controller"`
		Value      int   `json:"value"`
		Raw        []int `json:"raw"`
	}
	program struct {
		Channel int   `json:"channel"`
		Program int   `json:"program"`
		Raw     []int `json:"raw"`
	}
	bend struct {
		Channel int   `json:"channel"`
		Value   int   `json:"value"` // from -8192 to 8191, 0 in the middle
		Raw     []int `json:"raw"`
	}
)

// payloadOf is what a message means; nil for what makes no signal, such as pressure.
func payloadOf(message []byte) signal.Payload {
	raw := make([]int, len(message))
	for i, b := range message {
		raw[i] = int(b)
	}
	if len(raw) == 0 || len(raw) != 1+dataBytes(message[0]) {
		return nil
	}
	channel := raw[0]&0x0f + 1
	switch message[0] & 0xf0 {
	case noteOn:
		if raw[2] > 0 {
			return other("midi.note_on", note{channel, raw[1], raw[2], raw})
		}
		return other("midi.note_off", note{channel, raw[1], raw[2], raw}) // so that a sender need not change the status
	case noteOff:
		return other("midi.note_off", note{channel, raw[1], raw[2], raw})
	case controlChange:
		return other("midi.control_change", control{channel, raw[1], raw[2], raw})
	case programChange:
		return other("midi.program_change", program{channel, raw[1], raw})
	case pitchBend:
		return other("midi.pitch_bend", bend{channel, raw[2]<<7 | raw[1] - 8192, raw})
	}
	return nil
}

func other(name string, payload any) signal.Payload {
	body, _ := json.Marshal(payload) // numbers always have a JSON
	return signal.Other{Name: name, Body: body}
}
