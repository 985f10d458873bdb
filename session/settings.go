package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vela/protocol"
	"vela/session/speech"
)

// settings is what is in force. A client of version 2 may change it between turns.
type settings struct {
	turns Turns
	terms protocol.Terms // without what differs from one session.ready to the next
	input protocol.Format
}

// asked is the settings as a session.start asks for them.
func (t settings) asked() protocol.SessionStart {
	interrupt, approvals, input := t.terms.Interrupt, t.terms.Approvals, t.input
	var follow *[]string
	if len(t.terms.Follow) > 0 {
		follow = &t.terms.Follow
	}
	return protocol.SessionStart{
		Turns: string(t.turns), Agent: t.terms.Agent, Interrupt: &interrupt, Approvals: &approvals,
		Audio:         &protocol.AudioFormats{Input: &input, Output: t.terms.Audio.Output},
		Voice:         t.terms.Voice,
		TurnDetection: t.terms.TurnDetection, VAD: t.terms.VAD,
		Room: t.terms.Room, Follow: follow,
	}
}

// agent is the one of that name; nil if there is none.
func (c *Config) agent(name string) *NamedEngine {
	for i := range c.Agents {
		if c.Agents[i].Name == name {
			return &c.Agents[i]
		}
	}
	return nil
}

// agentName is that of whom a client gets who does not ask; empty where there is no agent.
func (c *Config) agentName() string {
	if len(c.Agents) == 0 {
		return ""
	}
	return c.Agents[0].Name
}

func (c *Config) agentNames() string {
	if len(c.Agents) == 0 {
		return "no agent"
	}
	var names []string
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// hasVoice says whether there is a voice of that name.
func (c *Config) hasVoice(name string) bool {
	return slices.ContainsFunc(c.Voices, func(v NamedVoice) bool { return v.Name == name })
}

// voiceName is that of the voice that a client gets who does not ask; empty where there is none.
func (c *Config) voiceName() string {
	if len(c.Voices) == 0 {
		return ""
	}
	return c.Voices[0].Name
}

func (c *Config) voiceNames() string {
	if len(c.Voices) == 0 {
		return "no voice"
	}
	return strings.Join(c.voiceList(), ", ")
}

func (c *Config) voiceList() []string {
	names := make([]string, 0, len(c.Voices))
	for _, v := range c.Voices {
		names = append(names, v.Name)
	}
	return names
}

// voices are those that speak now: the one that was chosen, and where it fails the others in their order.
func (s *Session) voices() []Synthesizer {
	chosen := func(v NamedVoice) bool { return v.Name == s.settings.terms.Voice }
	var list []Synthesizer
	for _, first := range []bool{true, false} {
		for _, v := range s.cfg.Voices {
			if chosen(v) == first {
				list = append(list, v.Synthesizer)
			}
		}
	}
	return list
}

// agent answers agent-backed turns now; nil where nobody does.
func (s *Session) agent() *NamedEngine { return s.cfg.agent(s.settings.terms.Agent) }

// mock answers the fixed turn.
func (s *Session) mock() NamedEngine { return NamedEngine{Engine: s.cfg.Mock} }

// features names what of version 2 this gateway gives.
var features = []string{"text", "audio_in", "resume", "history"}

func featuresOf(cfg *Config) []string {
	there := slices.Clip(features)
	if len(cfg.Voices) > 0 {
		there = append(there, "audio_out")
	}
	if cfg.Codec != nil {
		there = append(there, "opus")
	}
	if cfg.detects() {
		there = append(there, detected)
	}
	if cfg.Mirror != nil {
		there = append(there, "room")
	}
	if cfg.Follow != nil {
		there = append(there, "signals")
	}
	if cfg.Emits {
		there = append(there, "emit")
	}
	return there
}

func defaults(cfg *Config) settings {
	input := protocol.Format{Encoding: encodingPCM16, Rate: speech.Rate, Framing: "json"}
	turns := cfg.Turns
	if turns == "" {
		turns = Deterministic
	}
	if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, turns) {
		turns = cfg.Only[0]
	}
	return settings{turns: turns, input: input, terms: protocol.Terms{
		Protocol:      2,
		Turns:         string(turns),
		Agent:         cfg.agentName(),
		Voice:         cfg.voiceName(),
		Audio:         protocol.AudioFormats{Input: &input},
		TurnDetection: pressed,
		Interrupt:     true,
		Features:      featuresOf(cfg),
	}}
}

// Configure puts what a client asks for in force: all of it, or, with an error that is told to the client, nothing. It
// is for whoever makes the session, before Run.
func (s *Session) Configure(ask protocol.SessionStart) error {
	s.asked = &ask
	next := s.settings
	if err := next.apply(ask, &s.cfg); err != nil {
		return err
	}
	s.settings = next
	clear(s.streams[:])
	s.openMicrophones()
	return nil
}

func (t *settings) apply(ask protocol.SessionStart, cfg *Config) error {
	switch Turns(ask.Turns) {
	case "":
	case Deterministic, Agent:
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, Turns(ask.Turns)) {
			return unsupported("turns", "what your token allows")
		}
		t.turns, t.terms.Turns = Turns(ask.Turns), ask.Turns
	default:
		return unsupported("turns", "deterministic or agent")
	}
	if ask.Agent != "" {
		if cfg.agent(ask.Agent) == nil {
			return unsupported("agent", cfg.agentNames())
		}
		t.terms.Agent = ask.Agent
	}
	if ask.Voice != "" {
		if !cfg.hasVoice(ask.Voice) {
			return unsupported("voice", cfg.voiceNames())
		}
		t.terms.Voice = ask.Voice
	}
	if err := t.applyDetection(ask, cfg); err != nil {
		return err
	}
	if ask.Room != "" {
		if cfg.Mirror == nil {
			return unsupported("room", "no room")
		}
		if !isRoom(ask.Room) {
			return unsupported("room", "rooms whose names have up to 128 bytes and no control characters")
		}
		t.terms.Room = ask.Room
	}
	if err := t.applyFollow(ask.Follow, cfg); err != nil {
		return err
	}
	if lang := strings.ToLower(ask.Language); lang != "" && lang != "en" && lang != "en-us" {
		return unsupported("language", "en-US")
	}
	if ask.Interrupt != nil {
		t.terms.Interrupt = *ask.Interrupt
	}
	if ask.Approvals != nil {
		t.terms.Approvals = *ask.Approvals
	}
	return t.applyAudio(ask.Audio, cfg)
}

// Who ends the user's turn.
const (
	pressed  = "none" // the client does
	detected = "vad"  // a detector of speech does
)

// detects says whether a detector can end turns here: somebody has to hear them, too.
func (c *Config) detects() bool {
	return c.Detector != nil && c.Transcriber != nil && c.Version >= 2
}

// The bounds of how speech is told from silence, and what holds where nobody says.
const (
	leastThreshold, mostThreshold = 0.05, 0.95
	leastSpeech, mostSpeech       = 50, 2000  // ms
	leastSilence, mostSilence     = 100, 5000 // ms
)

func withDefaults(v protocol.VAD) protocol.VAD {
	return protocol.VAD{
		Threshold: cmp.Or(v.Threshold, 0.5),
		SpeechMs:  cmp.Or(v.SpeechMs, 200),
		SilenceMs: cmp.Or(v.SilenceMs, 600),
	}
}

// CheckVAD names what is out of bounds of how speech is told from silence, and the bounds; zeros are left to the session.
func CheckVAD(v protocol.VAD) (setting, bounds string) {
	v = withDefaults(v)
	switch {
	case v.Threshold < leastThreshold || v.Threshold > mostThreshold:
		return "threshold", fmt.Sprintf("%v to %v", leastThreshold, mostThreshold)
	case v.SpeechMs < leastSpeech || v.SpeechMs > mostSpeech:
		return "speechMs", fmt.Sprintf("%d to %d", leastSpeech, mostSpeech)
	case v.SilenceMs < leastSilence || v.SilenceMs > mostSilence:
		return "silenceMs", fmt.Sprintf("%d to %d", leastSilence, mostSilence)
	}
	return "", ""
}

// applyDetection says who ends the user's turns. The settings of a detector are for one that is in force; what they leave out
// stays as it is.
func (t *settings) applyDetection(ask protocol.SessionStart, cfg *Config) error {
	switch ask.TurnDetection {
	case "":
	case pressed:
		t.terms.TurnDetection, t.terms.VAD = pressed, nil
	case detected:
		if !cfg.detects() {
			return unsupported("turnDetection", pressed+": it has no recogniser, or nothing that detects speech. Run vela engines to see why")
		}
		vad := cfg.VAD
		t.terms.TurnDetection, t.terms.VAD = detected, &vad
	default:
		return unsupported("turnDetection", "none or vad")
	}
	switch {
	case t.terms.VAD != nil && t.turns != Agent:
		return unsupported("turnDetection", "vad in agent-backed turns, none in deterministic ones")
	case ask.VAD == nil:
		return nil
	case t.terms.VAD == nil:
		return unsupported("vad", "it with turnDetection vad")
	}
	vad := protocol.VAD{
		Threshold: cmp.Or(ask.VAD.Threshold, t.terms.VAD.Threshold),
		SpeechMs:  cmp.Or(ask.VAD.SpeechMs, t.terms.VAD.SpeechMs),
		SilenceMs: cmp.Or(ask.VAD.SilenceMs, t.terms.VAD.SilenceMs),
	}
	if setting, bounds := CheckVAD(vad); setting != "" {
		return unsupported("vad."+setting, bounds)
	}
	t.terms.VAD = &vad
	return nil
}

// isRoom says whether a room may be called this.
func isRoom(name string) bool {
	return len(name) <= 128 && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// mirror has the room show the session that is in force now, if it was another one before.
func (s *Session) mirror(before string) {
	if room := s.settings.terms.Room; room != before && s.cfg.Mirror != nil {
		s.cfg.Mirror(s, room)
	}
}

// The rates that speech is taken at, in Hz; it is resampled to that of the recognisers.
const (
	lowestRate  = 8000
	highestRate = 192000
	highestOut  = 48000 // of the answer's sound
)

func (t *settings) applyAudio(ask *protocol.AudioFormats, cfg *Config) error {
	if ask == nil {
		return nil
	}
	if err := t.applyOutput(ask.Output, cfg); err != nil {
		return err
	}
	in := ask.Input
	if in == nil {
		return nil
	}
	if err := cfg.checkFormat("audio.input", in, highestRate); err != nil {
		return err
	}
	t.input = *in
	t.terms.Audio.Input = in
	return nil
}

// applyOutput makes the answers audible. A client hears them only if it asks: most programs want text.
func (t *settings) applyOutput(out *protocol.Format, cfg *Config) error {
	switch {
	case out == nil:
		return nil
	case len(cfg.Voices) == 0:
		return unsupported("audio.output", "none: it has no voice. Run vela engines to see why")
	}
	if err := cfg.checkFormat("audio.output", out, highestOut); err != nil {
		return err
	}
	t.terms.Audio.Output = out
	return nil
}

func unsupported(setting, there string) error {
	return &refusal{protocol.CodeUnsupported, "This gateway cannot give that " + setting + ". What it has: " + there + ". Nothing changed."}
}

// asks says whether a session.start asks for anything.
func asks(m protocol.SessionStart) bool {
	return m.Turns != "" || m.Agent != "" || m.Audio != nil || m.Voice != "" || m.TurnDetection != "" || m.VAD != nil || m.Interrupt != nil ||
		m.Approvals != nil || m.Room != "" || m.Follow != nil || m.Language != "" || m.Metadata != nil
}
