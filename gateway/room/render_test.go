package room

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/livekit/protocol/livekit"

	"vela/protocol"
	"vela/protocol/ganglia"
	"vela/session"
)

// described is a packet in a line: who it is of, where it goes, and what it holds.
func described(p *livekit.DataPacket) string {
	who := ""
	if p.ParticipantIdentity != "" {
		who = p.ParticipantIdentity + " "
	}
	switch v := p.Value.(type) {
	case *livekit.DataPacket_User:
		return fmt.Sprintf("%s%s %s", who, v.User.GetTopic(), v.User.Payload)
	case *livekit.DataPacket_StreamHeader:
		h := v.StreamHeader
		return fmt.Sprintf("%sopen %s %s %s final=%s track=%s", who, h.StreamId[:2], h.Topic, h.Attributes[attrSegment], h.Attributes[attrFinal], h.Attributes[attrTrack])
	case *livekit.DataPacket_StreamChunk:
		return fmt.Sprintf("%schunk %s %d %s", who, v.StreamChunk.StreamId[:2], v.StreamChunk.ChunkIndex, v.StreamChunk.Content)
	case *livekit.DataPacket_StreamTrailer:
		return fmt.Sprintf("%sclose %s final=%s", who, v.StreamTrailer.StreamId[:2], v.StreamTrailer.Attributes[attrFinal])
	}
	return fmt.Sprintf("%T", p.Value)
}

// rendering renders with streams numbered from 01.
func rendering(cfg Config) *renderer {
	r := newRenderer("12345678-and-more", protocol.Idle, &cfg)
	n := byte(0)
	r.newID = func() uuid.UUID { n++; return uuid.UUID{n} }
	return r
}

func said(m protocol.Message) waiting {
	return waiting{event: session.Event{Seq: 7, At: 1000, Message: m}}
}

func by(w waiting, identity, track string) waiting { w.from = who{identity, track}; return w }

func TestRender(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		events []waiting
		want   []string
	}{
		"what a user says is a stream for each update, with all of its text and one segment": {
			events: []waiting{
				by(said(protocol.TranscriptPartial{Text: "what", ItemID: "i1"}), "ann", "TR_1"),
				by(said(protocol.TranscriptFinal{Text: "what time", ItemID: "i1"}), "ann", "TR_1"),
			},
			want: []string{
				"ann open 01 lk.transcription 12345678-i1 final=false track=TR_1", "ann chunk 01 0 what", "ann close 01 final=false",
				"ann open 02 lk.transcription 12345678-i1 final=true track=TR_1", "ann chunk 02 0 what time", "ann close 02 final=true",
			},
		},
		"nothing recognised closes the segment that was begun, and is nothing otherwise": {
			events: []waiting{
				said(protocol.TranscriptFinal{ItemID: "i1"}),
				said(protocol.TranscriptPartial{Text: "a", ItemID: "i2"}), said(protocol.TranscriptFinal{ItemID: "i2"}),
				said(protocol.TranscriptFinal{ItemID: "i3"}),
			},
			want: []string{
				"open 01 lk.transcription 12345678-i2 final=false track=", "chunk 01 0 a", "close 01 final=false",
				"open 02 lk.transcription 12345678-i2 final=true track=", "close 02 final=true",
			},
		},
		"what the agent says is one stream, final from its header on": {
			events: []waiting{
				said(protocol.ResponseTextDelta{Text: "Hello", ResponseID: "r1"}), said(protocol.ResponseTextDelta{Text: " you", ResponseID: "r1"}),
				said(protocol.ResponseCompleted{ResponseID: "r1"}), said(protocol.ResponseCompleted{ResponseID: "r1"}),
			},
			want: []string{
				"open 01 lk.transcription 12345678-r1 final=true track=", "chunk 01 0 Hello", `ganglia-events {"type":"content","delta":"Hello"}`,
				"chunk 01 1  you", `ganglia-events {"type":"content","delta":" you"}`, "close 01 final=true",
			},
		},
		"an answer that is cut ends, and so does one whose end was missed": {
			cfg: Config{NoContent: true},
			events: []waiting{
				said(protocol.ResponseTextDelta{Text: "a", ResponseID: "r1"}), said(protocol.ResponseCancelled{ResponseID: "r1"}),
				said(protocol.ResponseTextDelta{Text: "b", ResponseID: "r2"}), said(protocol.ResponseTextDelta{Text: "c", ResponseID: "r3"}),
			},
			want: []string{
				"open 01 lk.transcription 12345678-r1 final=true track=", "chunk 01 0 a", "close 01 final=true",
				"open 02 lk.transcription 12345678-r2 final=true track=", "chunk 02 0 b", "close 02 final=true",
				"open 03 lk.transcription 12345678-r3 final=true track=", "chunk 03 0 c",
			},
		},
		"after LiveKit's restart an answer begins again, and goes on": {
			cfg: Config{NoContent: true},
			events: []waiting{
				{restart: true},
				said(protocol.ResponseTextDelta{Text: "one ", ResponseID: "r1"}), said(protocol.ResponseTextDelta{Text: "two ", ResponseID: "r1"}),
				{restart: true}, said(protocol.ResponseTextDelta{Text: "three", ResponseID: "r1"}),
			},
			want: []string{
				"open 01 lk.transcription 12345678-r1 final=true track=", "chunk 01 0 one ", "chunk 01 1 two ",
				"open 02 lk.transcription 12345678-r1 final=true track=", "chunk 02 0 one two ", "chunk 02 1 three",
			},
		},
		"clients without text streams are served as well": {
			cfg: Config{NoContent: true, Transcripts: true},
			events: []waiting{
				by(said(protocol.TranscriptFinal{Text: "x", ItemID: "i1"}), "ann", ""),
				said(protocol.ResponseTextDelta{Text: "a", ResponseID: "r1"}), said(protocol.ResponseTextDelta{Text: "b", ResponseID: "r1"}), said(protocol.ResponseCompleted{}),
			},
			want: []string{
				"ann open 01 lk.transcription 12345678-i1 final=true track=", "ann chunk 01 0 x", "ann close 01 final=true",
				`ganglia-events {"type":"user_transcript","segmentId":"12345678-i1","text":"x","final":true}`,
				"open 03 lk.transcription 12345678-r1 final=true track=", "chunk 03 0 a", `ganglia-events {"type":"agent_transcript","segmentId":"12345678-r1","delta":"a","text":"a","final":false}`,
				"chunk 03 1 b", `ganglia-events {"type":"agent_transcript","segmentId":"12345678-r1","delta":"b","text":"ab","final":false}`,
				"close 03 final=true", `ganglia-events {"type":"agent_transcript","segmentId":"12345678-r1","delta":"","text":"ab","final":true}`,
			},
		},
		"status, artifacts and questions": {
			events: []waiting{
				said(ganglia.Status{Action: ganglia.ReadingFile, Detail: "a<b>"}),
				said(ganglia.Artifact{ArtifactType: ganglia.Error, Message: "no", SegmentID: "r1"}),
				said(protocol.ApprovalRequest{ApprovalID: "a1.1", CallID: "c", Name: "bash", Summary: "ls", Risk: "high", ExpiresMs: 5}),
				said(protocol.ToolCall{CallID: "c", Name: "bash"}), said(protocol.ThinkingDelta{Text: "hm"}),
			},
			want: []string{
				`ganglia-events {"type":"status","action":"reading_file","detail":"a<b>"}`,
				`ganglia-events {"type":"artifact","artifact_type":"error","segmentId":"12345678-r1","message":"no"}`,
				`vela-events {"type":"approval.request","payload":{"approvalId":"a1.1","callId":"c","name":"bash","summary":"ls","risk":"high","expiresMs":5},"seq":7,"ts":1000}`,
			},
		},
		"what agents of other sources do": {
			events: []waiting{
				said(ganglia.Status{Action: ganglia.ExecutingCommand, Detail: "make", Source: "local:claude-code"}),
				said(ganglia.Artifact{ArtifactType: ganglia.Markdown, Content: "# a", Source: "local:openclaw"}),
			},
			want: []string{
				`ganglia-events {"type":"status","action":"executing_command","detail":"make","source":"local:claude-code"}`,
				`ganglia-events {"type":"artifact","artifact_type":"markdown","source":"local:openclaw","content":"# a"}`,
			},
		},
		"an error is a system event, unless a caller is told": {
			events: []waiting{
				said(protocol.Error{Code: protocol.CodeSpeechFailed, Message: "The voice failed."}),
				said(protocol.Error{Code: protocol.CodeUnsupported, Message: "No.", Ref: "c1"}),
				said(protocol.SessionReady{Terms: &protocol.Terms{Resumed: true}}), said(protocol.SessionReady{Terms: &protocol.Terms{Resumed: true, Recovered: true}}),
			},
			want: []string{
				`ganglia-events {"type":"system_event","severity":"error","title":"Speech failed","message":"The voice failed."}`,
				`ganglia-events {"type":"system_event","severity":"error","title":"Connection restored","message":"Some of what happened meanwhile could not be sent again."}`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rendering(c.cfg)
			var got []string
			for _, w := range c.events {
				for _, p := range r.render(w) {
					got = append(got, described(p))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Every piece of a text is text by itself, however long it is and whatever it is written in.
func TestPieces(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("äöü€𝄞", 9000), strings.Repeat("x", maxChunk), strings.Repeat("x", maxChunk-1) + "€"} {
		var all strings.Builder
		for piece := range pieces(text) {
			if len(piece) > maxChunk || len(piece) == 0 || !utf8.ValidString(piece) {
				t.Errorf("a piece of %d bytes, valid: %v", len(piece), utf8.ValidString(piece))
			}
			all.WriteString(piece)
		}
		if all.String() != text {
			t.Errorf("%d bytes became %d", len(text), all.Len())
		}
	}
	n := 0
	for range pieces(strings.Repeat("\x80", 5*maxChunk)) { // no text at all
		n++
	}
	if n < 5 || n > 6 {
		t.Errorf("%d pieces", n)
	}
}

// A long text goes in several chunks of one stream, in order.
func TestALongText(t *testing.T) {
	r := rendering(Config{NoContent: true})
	long := strings.Repeat("€", maxChunk)
	for name, packets := range map[string][]*livekit.DataPacket{
		"the user's": r.render(waiting{event: session.Event{Message: protocol.TranscriptFinal{ItemID: "i1", Text: long}}, from: who{identity: "ann"}}),
		"the agent's": append(r.render(waiting{event: session.Event{Message: protocol.ResponseTextDelta{ResponseID: "r1", Text: long}}}),
			r.render(waiting{event: session.Event{Message: protocol.ResponseTextDelta{ResponseID: "r1", Text: "."}}})...),
	} {
		text, next := "", uint64(0)
		for _, p := range packets {
			if c := p.GetStreamChunk(); c != nil {
				if c.ChunkIndex != next || len(c.Content) > maxChunk || !utf8.Valid(c.Content) {
					t.Errorf("%s: chunk %d in the place of %d, of %d bytes", name, c.ChunkIndex, next, len(c.Content))
				}
				text, next = text+string(c.Content), next+1
			}
		}
		if strings.TrimSuffix(text, ".") != long {
			t.Errorf("%s: %d bytes came of %d", name, len(text), len(long))
		}
	}
}
