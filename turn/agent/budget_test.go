package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vela/turn"
	"vela/turn/tool"
)

func TestEstimate(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "abcd": 1, "abcde": 2, "what time is it?": 4,
		"ä": 1, "äää": 3, "日本語": 5, "👋": 2,
	} {
		if got := estimate(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}

// sized is a text of about so many tokens.
func sized(tokens int) string { return strings.Repeat("abc ", tokens) }

func TestFit(t *testing.T) {
	large, note := Result{CallID: "c", Name: "clock", Content: sized(500)}, Result{CallID: "c", Name: "clock", Content: noteDropped}
	small := Result{CallID: "c", Name: "clock", Content: "noon"}
	talk := func(name string) []Message { return []Message{user(name + sized(80)), assistant(sized(80))} }
	work := func(r Result) []Message {
		return []Message{user("a"), assistant("", clock("c")), results(r), assistant("b")}
	}
	question := []Message{user("now")}
	for name, c := range map[string]struct {
		past    [][]Message
		present []Message
		budget  int
		want    []Message
	}{
		"all fits":                  {[][]Message{talk("1"), talk("2")}, question, 1000, slices.Concat(talk("1"), talk("2"), question)},
		"the oldest goes":           {[][]Message{talk("1"), talk("2"), talk("3")}, question, 400, slices.Concat(talk("2"), talk("3"), question)},
		"what is before goes too":   {[][]Message{work(small), talk("2"), talk("3")}, question, 350, slices.Concat(talk("3"), question)},
		"results go before words":   {[][]Message{talk("1"), work(large)}, question, 400, slices.Concat(talk("1"), work(note), question)},
		"only the question is left": {[][]Message{talk("1")}, []Message{user(sized(500))}, 10, []Message{user(sized(500))}},
		"nothing before":            {nil, question, 0, question},
		"results of earlier rounds": {
			[][]Message{talk("1")},
			[]Message{user("now"), assistant("", clock("c")), results(large), assistant("", clock("d")), results(large), assistant("", clock("e")), results(small)},
			700,
			[]Message{user("now"), assistant("", clock("c")), results(note), assistant("", clock("d")), results(large), assistant("", clock("e")), results(small)},
		},
		"no more than has to": {
			nil,
			[]Message{user("now"), assistant("", clock("c")), results(large, large), assistant("", clock("e")), results(small)},
			700,
			[]Message{user("now"), assistant("", clock("c")), results(note, large), assistant("", clock("e")), results(small)},
		},
		"small results stay": {
			nil,
			[]Message{user("now"), assistant("", clock("c")), results(small, large), assistant("", clock("e")), results(small)},
			300,
			[]Message{user("now"), assistant("", clock("c")), results(small, note), assistant("", clock("e")), results(small)},
		},
	} {
		if got := fit(c.past, c.present, c.budget); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

// What the model has not seen yet is made shorter, but not taken away.
func TestTheLastResultsAreShared(t *testing.T) {
	present := []Message{user("now"), assistant("", clock("c"), clock("d"), clock("e")), results(
		Result{CallID: "c", Content: sized(8000)}, Result{CallID: "d", Content: sized(8000)}, Result{CallID: "e", Content: "noon"},
	)}
	got := fit(nil, present, 4000)
	shown := got[2].Results
	if tokens(got) > 4000 || len(shown[0].Content) < 6000 || len(shown[0].Content) != len(shown[1].Content) || shown[2].Content != "noon" {
		t.Errorf("%d tokens; %d, %d and %d bytes", tokens(got), len(shown[0].Content), len(shown[1].Content), len(shown[2].Content))
	}
	if least := fit(nil, present, 1)[2].Results[0].Content; len(least) < leastResult || strings.HasPrefix(least, "[") {
		t.Errorf("of a budget of nothing: %q", least)
	}
}

// Whatever a conversation was, what is made of it can be sent: the sides take turns, every call has its result beside
// it, ids are single, what is left is in order, it fits unless only this turn is left, and nothing was changed in place.
func TestFitOfAnyConversation(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		taken := ids{}
		history := anyHistory(r)
		past := exchanges(history, taken, 1+r.IntN(4000))
		present := []Message{user("question" + sized(r.IntN(50)))}
		for range r.IntN(4) {
			present = append(present, anyRound(r, taken)...)
		}
		budget := r.IntN(4000)
		before := fmt.Sprint(history, past, present)
		got := fit(past, present, budget)
		if fmt.Sprint(history, past, present) != before {
			t.Fatalf("seed %d: something was changed in place", seed)
		}
		if err := sendable(got); err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, got)
		}
		if err := faithful(got, past, present); err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, got)
		}
		if tokens(got) > budget && (len(got) > len(present) || !squeezed(got)) {
			t.Fatalf("seed %d: %d tokens of %d\n%+v", seed, tokens(got), budget, got)
		}
	}
}

func anyHistory(r *rand.Rand) []turn.Message {
	var all []turn.Message
	for i := range r.IntN(12) {
		m := turn.Message{Role: turn.User, Text: fmt.Sprint("m", i, " ", sized(r.IntN(200)))}
		if r.IntN(2) == 0 {
			m.Role = turn.Assistant
			for range r.IntN(4) {
				m.Tools = append(m.Tools, in(r.IntN(4), r.IntN(2000), use(fmt.Sprint("c", r.IntN(5)), fmt.Sprintf(`{"content":%q}`, sized(r.IntN(2000))), r.IntN(2) == 0)))
			}
			slices.SortFunc(m.Tools, func(a, b turn.ToolUse) int { return cmp.Or(a.After-b.After, a.Round-b.Round) })
			if r.IntN(3) == 0 { // cut, or spoken by another mouth
				m.Written, m.Text, m.Interrupted = m.Text, m.Text[r.IntN(3):len(m.Text)-r.IntN(3)], r.IntN(2) == 0
			}
			if r.IntN(3) == 0 {
				m.Text = ""
			}
		}
		all = append(all, m)
	}
	return all
}

func anyRound(r *rand.Rand, taken ids) []Message {
	said, got := assistant(sized(r.IntN(50))), results()
	for range 1 + r.IntN(4) {
		id := taken.claim(fmt.Sprint("c", r.IntN(5)))
		said.Calls = append(said.Calls, tool.Call{ID: id, Name: "clock", Input: json.RawMessage(`{}`)})
		got.Results = append(got.Results, Result{CallID: id, Name: "clock", Content: "r" + sized(r.IntN(2000))})
	}
	return []Message{said, got}
}

// sendable says what a vendor would refuse about messages.
func sendable(all []Message) error {
	seen := map[string]bool{}
	for i, m := range all {
		want := turn.User
		if i%2 == 1 {
			want = turn.Assistant
		}
		if m.Role != want {
			return fmt.Errorf("message %d is the %s's", i, m.Role)
		}
		if m.Text == "" && len(m.Calls) == 0 && len(m.Results) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		var calls []string
		if i > 0 {
			for _, c := range all[i-1].Calls {
				calls = append(calls, c.ID)
			}
		}
		for k, r := range m.Results {
			if k >= len(calls) || r.CallID != calls[k] || r.Content == "" || seen[r.CallID] {
				return fmt.Errorf("result %q of message %d is to no call", r.CallID, i)
			}
			seen[r.CallID] = true
		}
		if len(m.Results) != len(calls) {
			return fmt.Errorf("message %d has %d results of %d calls", i, len(m.Results), len(calls))
		}
	}
	if len(all)%2 == 0 || len(all[len(all)-1].Calls) > 0 {
		return fmt.Errorf("the last message is not the user's")
	}
	return nil
}

// faithful says how messages differ from the end of the conversation, results aside.
func faithful(got []Message, past [][]Message, present []Message) error {
	whole := append(slices.Concat(past...), present...)
	if len(got) < len(present) || len(got) > len(whole) {
		return fmt.Errorf("%d messages of %d", len(got), len(whole))
	}
	whole = whole[len(whole)-len(got):]
	for i := range got {
		a, b := got[i], whole[i]
		a.Results, b.Results = nil, nil
		if !reflect.DeepEqual(a, b) {
			return fmt.Errorf("message %d is %+v, want %+v", i, a, b)
		}
	}
	if first := got[0]; len(first.Results) > 0 {
		return fmt.Errorf("an exchange was cut in two")
	}
	return nil
}

// squeezed says whether no result of this turn could be shorter.
func squeezed(present []Message) bool {
	last := len(present) - 1
	for i, m := range present {
		for _, r := range m.Results {
			if i < last && estimate(r.Content) > estimate(noteDropped) || len(r.Content) > 2*leastResult {
				return false
			}
		}
	}
	return true
}
