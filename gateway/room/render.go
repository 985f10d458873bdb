package room

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/livekit/protocol/livekit"
	"google.golang.org/protobuf/proto"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/session"
)

// The topics that a room's packets have.
const (
	topicEvents        = "ganglia-events"   // the objects of package ganglia, both ways
	topicVela          = "vela-events"      // events of the Vela protocol for which ganglia-events has no words
	topicTranscription = "lk.transcription" // text streams of what is said
	topicChat          = "lk.chat"          // text streams of what people write
)

// The attributes of a transcription's stream, by LiveKit's convention.
const (
	attrSegment = "lk.segment_id"
	attrFinal   = "lk.transcription_final"
	attrTrack   = "lk.transcribed_track_id"
)

// The agent's attributes, which whoever joins later knows too.
const (
	attrState     = "lk.agent.state"
	attrDetection = "vela.turn_detection" // vad: who speaks is heard by itself; none: muting ends a turn. Not there: always so
	attrFollow    = "vela.follow"         // a JSON array: the sources that are followed. Not there: none can be
)

// renderer makes packets of what a session says. It belongs to the publisher's goroutine.
//
// What the user says is a stream for each update, with all of its text; the streams of one utterance have one segment.
// What the agent says is one stream a segment, a piece of it a chunk. Clients read whether a segment is final from the
// header, and act on it when the stream ends: so the agent's is final from its header on, and the user's in the last one.
// The trailer says it too.
type renderer struct {
	prefix      string // of segments, so that those of two conversations in one room differ
	content     bool   // also send content events
	transcripts bool   // also send agent_transcript and user_transcript
	newID       func() uuid.UUID
	state       protocol.State
	detection   string   // how turns end; empty where this gateway cannot hear it
	follows     string   // the sources that are followed, as JSON; empty where none can be
	answer      *segment // nil while the agent says nothing
	partial     bool     // some of what the user says has been shown
}

// segment is what the agent says in one answer.
type segment struct {
	id, stream string
	chunks     uint64
	text       strings.Builder // so far
}

func newRenderer(sessionID string, state protocol.State, cfg *Config) *renderer {
	return &renderer{
		state:  state,
		prefix: sessionID[:min(8, len(sessionID))] + "-", content: !cfg.NoContent, transcripts: cfg.Transcripts, newID: uuid.New,
	}
}

// render makes the packets of one event.
func (r *renderer) render(w waiting) []*livekit.DataPacket {
	switch {
	case w.restart:
		return r.restart(w.event.At)
	case w.object != nil:
		packets := r.object(w.object)
		if w.to != "" {
			for _, p := range packets {
				p.DestinationIdentities = []string{w.to}
			}
		}
		return packets
	case w.terms != nil:
		r.agreed(w.terms)
		return nil
	}
	switch m := w.event.Message.(type) {
	case protocol.SessionReady:
		return r.ready(m)
	case protocol.SessionState:
		r.state = m.Value
		return nil
	case protocol.TranscriptPartial:
		r.partial = true
		return r.user(w, m.ItemID, m.Text, false)
	case protocol.TranscriptFinal:
		if m.Text == "" && !r.partial {
			return nil
		}
		r.partial = false
		return r.user(w, m.ItemID, m.Text, true)
	case protocol.ResponseTextDelta:
		return r.delta(w.event, m)
	case protocol.ResponseCompleted, protocol.ResponseCancelled:
		return r.end()
	case protocol.Error:
		return r.failed(m)
	case ganglia.Status:
		return r.object(m)
	case ganglia.Artifact:
		if m.SegmentID != "" {
			m.SegmentID = r.prefix + m.SegmentID
		}
		return r.object(m)
	case protocol.ApprovalRequest:
		return []*livekit.DataPacket{user(topicVela, protocol.AppendEnvelope(nil, protocol.Envelope{
			Seq: w.event.Seq, TS: w.event.At, Message: m,
		}))}
	}
	return nil
}

// stateBegin is an agent's that has come and does not listen yet.
const stateBegin = "initializing"

// agentStates are the states by the names that LiveKit's clients know.
var agentStates = map[protocol.State]string{
	protocol.Idle: "listening", protocol.Listening: "listening", protocol.Thinking: "thinking", protocol.Speaking: "speaking",
}

// attributes are the agent's own, as of the last event.
func (r *renderer) attributes() map[string]string {
	a := map[string]string{attrState: agentStates[r.state]}
	if r.detection != "" {
		a[attrDetection] = r.detection
	}
	if r.follows != "" {
		a[attrFollow] = r.follows
	}
	return a
}

// agreed notes how turns end from now on, and who is followed.
func (r *renderer) agreed(terms *protocol.Terms) {
	r.detection, r.follows = "", ""
	if slices.Contains(terms.Features, "vad") {
		r.detection = terms.TurnDetection
	}
	if slices.Contains(terms.Features, "signals") {
		r.follows = "[]"
		if b, err := json.Marshal(terms.Follow); err == nil && len(terms.Follow) > 0 {
			r.follows = string(b)
		}
	}
}

// ready says so when some of what was missed is lost.
func (r *renderer) ready(m protocol.SessionReady) []*livekit.DataPacket {
	if m.Terms != nil {
		r.agreed(m.Terms)
	}
	if m.Terms == nil || !m.Resumed || m.Recovered {
		return nil
	}
	return r.object(ganglia.SystemEvent{
		Severity: ganglia.SeverityError, Title: "Connection restored",
		Message: "Some of what happened meanwhile could not be sent again.",
	})
}

// failed shows an error. One that has a ref is told to who caused it.
func (r *renderer) failed(m protocol.Error) []*livekit.DataPacket {
	if strings.HasPrefix(m.Ref, "c") {
		return nil // the caller is told
	}
	return r.object(ganglia.SystemEvent{Severity: ganglia.SeverityError, Title: title(m.Code), Message: m.Message})
}

// title is an error's code in words.
func title(c protocol.Code) string {
	words := strings.ReplaceAll(string(c), "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

func (r *renderer) user(w waiting, item, text string, final bool) []*livekit.DataPacket {
	attributes := map[string]string{attrSegment: r.prefix + item, attrFinal: boolean(final)}
	if w.from.track != "" {
		attributes[attrTrack] = w.from.track
	}
	id := r.newID().String()
	packets := []*livekit.DataPacket{header(w.from.identity, id, w.event.At, attributes)}
	index := uint64(0)
	for piece := range pieces(text) {
		packets = append(packets, chunk(w.from.identity, id, index, piece))
		index++
	}
	packets = append(packets, trailer(w.from.identity, id, map[string]string{attrFinal: boolean(final)}))
	if r.transcripts {
		packets = append(packets, r.object(ganglia.UserTranscript{SegmentID: r.prefix + item, Text: text, Final: final})...)
	}
	return packets
}

func (r *renderer) delta(e session.Event, m protocol.ResponseTextDelta) (packets []*livekit.DataPacket) {
	if r.answer != nil && r.answer.id != r.prefix+m.ResponseID {
		packets = r.end()
	}
	if r.answer == nil {
		r.answer = &segment{id: r.prefix + m.ResponseID, stream: r.newID().String()}
		packets = append(packets, header("", r.answer.stream, e.At, map[string]string{attrSegment: r.answer.id, attrFinal: "true"}))
	}
	a := r.answer
	a.text.WriteString(m.Text)
	for piece := range pieces(m.Text) {
		packets = append(packets, chunk("", a.stream, a.chunks, piece))
		a.chunks++
	}
	if r.content {
		packets = append(packets, r.object(ganglia.Content{Delta: m.Text})...)
	}
	if r.transcripts {
		packets = append(packets, r.object(ganglia.AgentTranscript{SegmentID: a.id, Delta: m.Text, Text: a.text.String()})...)
	}
	return packets
}

// restart begins the present segment's stream again, with all that was said: the one before is lost.
func (r *renderer) restart(at int64) (packets []*livekit.DataPacket) {
	a := r.answer
	if a == nil {
		return nil
	}
	a.stream, a.chunks = r.newID().String(), 0
	packets = append(packets, header("", a.stream, at, map[string]string{attrSegment: a.id, attrFinal: "true"}))
	for piece := range pieces(a.text.String()) {
		packets = append(packets, chunk("", a.stream, a.chunks, piece))
		a.chunks++
	}
	return packets
}

// end ends what the agent says, if it says something.
func (r *renderer) end() []*livekit.DataPacket {
	a := r.answer
	if a == nil {
		return nil
	}
	r.answer = nil
	packets := []*livekit.DataPacket{trailer("", a.stream, map[string]string{attrFinal: "true"})}
	if r.transcripts {
		packets = append(packets, r.object(ganglia.AgentTranscript{SegmentID: a.id, Text: a.text.String(), Final: true})...)
	}
	return packets
}

// object is one of ganglia-events, in as many packets as it takes.
func (r *renderer) object(o any) []*livekit.DataPacket {
	m, ok := o.(json.Marshaler)
	if !ok {
		return nil // all of them are
	}
	text, err := ganglia.Encode(m)
	if err != nil {
		return nil // what the session makes can be written
	}
	var packets []*livekit.DataPacket
	for packet := range ganglia.Split(text, r.newID()) {
		packets = append(packets, user(topicEvents, packet))
	}
	return packets
}

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// maxChunk bounds the text in one chunk of a stream, in bytes.
const maxChunk = 12 << 10

// pieces cuts a text between characters: readers decode each chunk by itself.
func pieces(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(len(text), maxChunk)
			for n < len(text) && n > maxChunk-utf8.UTFMax && !utf8.RuneStart(text[n]) {
				n--
			}
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// The packets of LiveKit. An identity makes what an agent sends that participant's own; empty is the agent's.

func user(topic string, payload []byte) *livekit.DataPacket {
	return &livekit.DataPacket{Value: &livekit.DataPacket_User{User: &livekit.UserPacket{Payload: payload, Topic: proto.String(topic)}}}
}

func header(identity, stream string, at int64, attributes map[string]string) *livekit.DataPacket {
	return &livekit.DataPacket{ParticipantIdentity: identity, Value: &livekit.DataPacket_StreamHeader{StreamHeader: &livekit.DataStream_Header{
		StreamId: stream, Timestamp: at, Topic: topicTranscription, MimeType: "text/plain", Attributes: attributes,
		ContentHeader: &livekit.DataStream_Header_TextHeader{TextHeader: &livekit.DataStream_TextHeader{}},
	}}}
}

func chunk(identity, stream string, index uint64, text string) *livekit.DataPacket {
	return &livekit.DataPacket{ParticipantIdentity: identity, Value: &livekit.DataPacket_StreamChunk{StreamChunk: &livekit.DataStream_Chunk{
		StreamId: stream, ChunkIndex: index, Content: []byte(text),
	}}}
}

func trailer(identity, stream string, attributes map[string]string) *livekit.DataPacket {
	return &livekit.DataPacket{ParticipantIdentity: identity, Value: &livekit.DataPacket_StreamTrailer{StreamTrailer: &livekit.DataStream_Trailer{
		StreamId: stream, Attributes: attributes,
	}}}
}
