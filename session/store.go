package session

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"vela/protocol"
	"vela/turn"
)

// Store keeps one session beyond its process. The session calls it from its own goroutine, one call at a time.
type Store interface {
	// Append keeps the next event, as version 2 writes it. It returns once the event would survive a crash of the
	// process: no peer is shown it before.
	Append(ctx context.Context, seq uint64, event []byte) error
	// Save keeps what there is beside the events; the last one counts.
	Save(ctx context.Context, state []byte) error
	// Delete forgets the session.
	Delete(ctx context.Context) error
}

// Stored is a session as a [Store] has kept it.
type Stored struct {
	ID     string
	State  []byte
	Events [][]byte // in order
}

// storeTime bounds how long a session waits for its store.
const storeTime = 5 * time.Second

// state is what a session keeps beside its events.
type state struct {
	Token    tokenHash             `json:"token"` // what resumes it is not kept, only its hash
	Settings protocol.SessionStart `json:"settings"`
	History  []kept                `json:"history"`
	Turns    Turns                 `json:"turns"`
	Only     []Turns               `json:"only,omitempty"`
	Follows  bool                  `json:"follows,omitempty"` // its client may follow other agents
	Emits    bool                  `json:"emits,omitempty"`   // and emit signals
	Answered int                   `json:"answered"`          // the turns that History knows, by their number
}

// kept is one part of the conversation.
type kept struct {
	Role  turn.Role `json:"role"`
	Text  string    `json:"text"`
	Whole string    `json:"written,omitempty"`
	Tools []keptUse `json:"tools,omitempty"`
	Cut   bool      `json:"interrupted,omitempty"`
	At    time.Time `json:"at"`
}

// keptUse is one tool call of it.
type keptUse struct {
	CallID  string          `json:"callId"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Output  json.RawMessage `json:"output,omitempty"`
	Success bool            `json:"success"`
	Round   int             `json:"round,omitempty"`
	After   int             `json:"after,omitempty"`
}

func keep(m turn.Message) kept {
	k := kept{Role: m.Role, Text: m.Text, Whole: m.Written, Cut: m.Interrupted, At: m.At}
	for _, u := range m.Tools {
		k.Tools = append(k.Tools, keptUse(u))
	}
	return k
}

func (k kept) message() turn.Message {
	m := turn.Message{Role: k.Role, Text: k.Text, Written: k.Whole, Interrupted: k.Cut, At: k.At}
	for _, u := range k.Tools {
		m.Tools = append(m.Tools, turn.ToolUse(u))
	}
	return m
}

// tokenHash is the SHA-256 of a resume token, as the client writes it.
type tokenHash [sha256.Size]byte

// HashToken is what stands for a resume token where sessions are kept and looked up.
func HashToken(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// store keeps an event before anybody is shown it. When it cannot, the session goes on in memory only, and says so once.
func (s *Session) store(e Event) {
	if s.kept == nil {
		return
	}
	s.storeBuf = appendEvent(s.storeBuf[:0], e)
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := s.kept.Append(ctx, e.Seq, s.storeBuf); err != nil {
		s.loseStore(err)
	}
}

// save keeps what changed beside the events.
func (s *Session) save() {
	if s.kept == nil {
		return
	}
	st := state{Token: s.tokenHash, Turns: s.cfg.Turns, Only: s.cfg.Only, Settings: s.settings.asked(), Follows: s.cfg.Follow != nil, Emits: s.cfg.Emits, Answered: s.turns}
	for _, m := range s.history {
		st.History = append(st.History, keep(m))
	}
	b, err := json.Marshal(st)
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err == nil {
		err = s.kept.Save(ctx, b)
	}
	if err != nil {
		s.loseStore(err)
	}
}

// loseStore lets go of a store that fails: what is there stays, and a gap would be worse than an end.
func (s *Session) loseStore(err error) {
	s.kept = nil
	s.cfg.Metrics.storeFailed()
	s.log.Error("this conversation is kept in memory only from now on", "error", err)
	told := s.wireError(errNotKept, protocol.CodeInternal)
	for _, p := range s.seats {
		if p != nil {
			s.tell(p, told)
		}
	}
}

// endStore forgets a session that is over; one that only the gateway's end has ended is kept, to be resumed.
func (s *Session) endStore(why error) {
	if s.kept == nil || s.survives(why) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := s.kept.Delete(ctx); err != nil {
		s.cfg.Metrics.storeFailed()
		s.log.Error("this conversation is over, but could not be deleted", "error", err)
	}
	s.kept = nil
}

// survives says whether the session goes on in another process.
func (s *Session) survives(why error) bool {
	return s.kept != nil && errors.Is(why, ErrShutdown)
}

// Restore makes a session that a store has kept, and returns the hash of the token that resumes it; cfg is as for
// [New], without a token. A turn that ran when its process ended is broken off, in events of its own, as soon as Run
// runs. The window in which it can be resumed begins anew.
func Restore(cfg Config, from Stored) (*Session, [sha256.Size]byte, error) {
	var st state
	if err := json.Unmarshal(from.State, &st); err != nil {
		return nil, st.Token, fmt.Errorf("session: the kept state of %s: %w", from.ID, err)
	}
	cfg.ID, cfg.Version, cfg.Turns, cfg.Only, cfg.Token = from.ID, 2, st.Turns, st.Only, ""
	cfg.Emits = cfg.Emits && st.Emits
	if !st.Follows {
		cfg.Follow = nil
	}
	s := New(cfg)
	if err := s.Configure(stillThere(st.Settings, &cfg)); err != nil {
		return nil, st.Token, fmt.Errorf("session: the kept settings of %s: %w", from.ID, err)
	}
	for _, m := range st.History {
		s.history = append(s.history, m.message())
	}
	r := restoring{session: s, answered: st.Answered}
	for _, text := range from.Events {
		if err := r.take(text); err != nil {
			return nil, st.Token, fmt.Errorf("session: a kept event of %s: %w", from.ID, err)
		}
	}
	s.joined, s.restored = true, &r
	s.tokenHash = st.Token
	return s, st.Token, nil
}

// stillThere is kept settings without what this process has not: the first agent stands in for one that is gone, so does the first voice, text
// for a voice, PCM16 for Opus, and no room for a room. The client is told when it resumes.
func stillThere(ask protocol.SessionStart, cfg *Config) protocol.SessionStart {
	if cfg.agent(ask.Agent) == nil {
		ask.Agent = ""
	}
	if !cfg.hasVoice(ask.Voice) {
		ask.Voice = ""
	}
	if !cfg.detects() {
		ask.TurnDetection, ask.VAD = "", nil
	}
	if cfg.Mirror == nil {
		ask.Room = ""
	}
	if cfg.Follow == nil {
		ask.Follow = nil
	}
	if ask.Audio == nil {
		return ask
	}
	audio := *ask.Audio
	if len(cfg.Voices) == 0 {
		audio.Output = nil
	}
	if cfg.Codec == nil {
		audio.Input, audio.Output = withoutCodec(audio.Input), withoutCodec(audio.Output)
	}
	ask.Audio = &audio
	return ask
}

// withoutCodec is the same sound as PCM16.
func withoutCodec(f *protocol.Format) *protocol.Format {
	if f == nil || f.Encoding != encodingOpus {
		return f
	}
	return &protocol.Format{Encoding: encodingPCM16, Rate: f.Rate, Framing: f.Framing}
}

// restoring is what the kept events say about where the session was.
type restoring struct {
	session  *Session
	answered int // the turns that the kept history knows
	state    protocol.State
	asked    string                        // what waits for the end of its answer
	open     string                        // the answer that had begun and not ended
	turn     string                        // the turn that was not measured
	text     []byte                        // of the answer
	sound    []protocol.ResponseAudioDelta // of it, without the sound itself
	tools    []turn.ToolUse
	runs     int   // of the tools, how many had not returned
	rounds   int   // of tools: no event says where one ends, but while a tool runs the next has not begun
	began    int64 // when it did, in Unix ms
	last     int64 // when the last event came
}

func (r *restoring) take(text []byte) error {
	e, err := protocol.DecodeEnvelope(text, protocol.Server)
	if err != nil {
		return err
	}
	s := r.session
	if s.events.n == 0 && e.Seq > 0 {
		s.events.last = e.Seq - 1
	}
	if e.Seq != s.events.last+1 {
		return fmt.Errorf("number %d follows %d", e.Seq, s.events.last)
	}
	s.events.add(time.UnixMilli(e.TS), e.Message)
	r.last = e.TS
	r.note(e.Message)
	return nil
}

func (r *restoring) note(m protocol.Message) {
	s := r.session
	switch m := m.(type) {
	case protocol.SessionState:
		if r.state = m.Value; r.state == protocol.Idle {
			r.asked = ""
		}
	case protocol.TranscriptPartial:
		s.items = max(s.items, number(m.ItemID))
	case protocol.TranscriptFinal:
		s.items = max(s.items, number(m.ItemID))
		if m.Text != "" || r.open == "" { // else there were no words, and the answer went on
			r.asked = m.Text
		}
	case protocol.ResponseCreated:
		s.turns = max(s.turns, number(m.ResponseID))
		r.open, r.turn, r.text, r.sound, r.began = m.ResponseID, m.TurnID, nil, nil, r.last
		r.tools, r.runs, r.rounds = nil, 0, 0
	case protocol.ResponseTextDelta:
		r.text = append(r.text, m.Text...)
	case protocol.ResponseAudioDelta:
		m.Chunk = ""
		r.sound = append(r.sound, m)
	case protocol.ToolCall:
		if r.runs == 0 {
			r.rounds++
		}
		r.runs++
		r.tools = called(r.tools, turn.ToolUse{CallID: m.CallID, Name: m.Name, Input: m.Input, Round: r.rounds, After: len(r.text)})
	case protocol.ToolResult:
		r.runs--
		returned(r.tools, m.CallID, m.Success, m.Output)
	case protocol.ResponseCompleted, protocol.ResponseCancelled:
		r.open, r.asked = "", ""
	case protocol.TurnMetrics:
		r.turn = ""
	}
}

// number is that of an id such as "r12".
func number(id string) int {
	if id == "" {
		return 0
	}
	n, _ := strconv.Atoi(id[1:])
	return n
}

// interrupted breaks off what ran when the process ended. It is the first thing that a restored session does.
func (s *Session) interrupted() {
	r := s.restored
	s.restored = nil
	if r == nil {
		return
	}
	s.alone = s.now
	if r.asked != "" {
		s.emit(s.wireError(errInterrupted, protocol.CodeInternal))
	}
	if r.open != "" {
		heard, played := r.heard()
		s.emit(protocol.ResponseCancelled{ResponseID: r.open, Reason: protocol.CancelError, HeardText: heard, PlayedMs: played})
		s.remembered(r)
	}
	if r.turn != "" {
		s.emit(protocol.TurnMetrics{TurnID: r.turn, TotalMs: r.last - r.began})
	}
	if r.asked != "" || r.state != protocol.Idle && r.state != "" {
		s.emit(protocol.SessionState{Value: protocol.Idle})
	}
}

// remembered makes what was broken off part of the conversation, unless it is already, or was mocked.
func (s *Session) remembered(r *restoring) {
	if number(r.turn) <= r.answered || s.settings.turns != Agent || r.asked == s.cfg.Mock.Question() {
		return
	}
	heard, _ := r.heard()
	said := turn.Message{Text: heard, Tools: r.tools, Interrupted: true}
	if text := string(r.text); text != heard {
		said.Written = text
	}
	s.rememberText(s.now, r.asked, said)
	s.save()
}

// heard is what of the answer certainly was, and how many ms of its sound had been played: acknowledgements are not
// kept, but no client is sent more than a little ahead of them.
func (r *restoring) heard() (text string, played int64) {
	if len(r.sound) == 0 {
		return string(r.text), 0
	}
	last := r.sound[len(r.sound)-1].StartMs
	played = max(0, last-playAhead.Milliseconds())
	begun := 0 // the text of what had begun by then; its last piece may not have ended
	end := 0
	for _, m := range r.sound {
		if m.StartMs+chunkLength.Milliseconds() > played {
			break
		}
		if m.Text != "" {
			end, begun = begun, begun+len(m.Text)
		}
	}
	return string(r.text[:min(end, len(r.text))]), played
}
