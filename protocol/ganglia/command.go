package ganglia

import (
	"encoding/json"
	"fmt"
)

// Command is one object of the channel that a client sends: a [TTSMode], a [TextMessage] or an [EndVoiceSession]. A type
// switch tells which.
type Command interface {
	// Type is the object's "type".
	Type() string
	json.Marshaler
	command()
}

// TTSMode says whether this client wants to hear the answers. Clients send it when they connect and whenever an agent
// joins.
type TTSMode struct {
	Value string `json:"value"` // "on" or "off"; see On
}

// On reports whether answers are to be heard, which anything but "off" means.
func (m TTSMode) On() bool { return m.Value != "off" }

// TextMessage is something typed, a turn as if it had been said. Blank text is none.
type TextMessage struct {
	Text string `json:"text"`
}

// EndVoiceSession asks the agent to leave the room.
type EndVoiceSession struct{}

// Type implements [Command].
func (TTSMode) Type() string         { return "tts-mode" }
func (TextMessage) Type() string     { return "text_message" }
func (EndVoiceSession) Type() string { return "end_voice_session" }

func (TTSMode) command()         {}
func (TextMessage) command()     {}
func (EndVoiceSession) command() {}

// MarshalJSON writes the channel's object, its type first.
func (m TTSMode) MarshalJSON() ([]byte, error) {
	type fields TTSMode
	return typed(m.Type(), fields(m))
}

// MarshalJSON writes the channel's object, its type first.
func (m TextMessage) MarshalJSON() ([]byte, error) {
	type fields TextMessage
	return typed(m.Type(), fields(m))
}

// MarshalJSON writes the channel's object, its type first.
func (e EndVoiceSession) MarshalJSON() ([]byte, error) {
	type fields EndVoiceSession
	return typed(e.Type(), fields(e))
}

var commands = map[string]func([]byte) (Command, error){
	TTSMode{}.Type():         asCommand[TTSMode],
	TextMessage{}.Type():     asCommand[TextMessage],
	EndVoiceSession{}.Type(): asCommand[EndVoiceSession],
}

// maxCommand is more than anybody types, and no more than a packet that a client's library would send.
const maxCommand = 64 << 10 // bytes

// DecodeCommand reads one object of the channel that a client sent, of at most 64 KiB. Fields that are not named here are
// ignored.
func DecodeCommand(object []byte) (Command, error) {
	if len(object) > maxCommand {
		return nil, fmt.Errorf("ganglia: a command of %d bytes is too long", len(object))
	}
	return decode(object, commands)
}

func asCommand[C Command](object []byte) (Command, error) {
	var c C
	if err := json.Unmarshal(object, &c); err != nil {
		return nil, fmt.Errorf("ganglia: decode %s: %w", c.Type(), err)
	}
	return c, nil
}
