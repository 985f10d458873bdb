package agent

import "slices"

// fit is the messages of a prompt within a budget of tokens: the newest of the past exchanges, oldest first, then the
// present one. An exchange that is too large is taken with notes in the place of its results; when that is too large as
// well, it is left out with all before it. A call is never parted from its result. The present exchange always stays:
// see squeeze.
func fit(past [][]Message, present []Message, budget int) []Message {
	present = squeeze(present, budget)
	room := budget - tokens(present)
	var taken [][]Message // newest first
	for _, e := range slices.Backward(past) {
		if tokens(e) > room {
			e = bare(e)
		}
		cost := tokens(e)
		if cost > room {
			break
		}
		room -= cost
		taken = append(taken, e)
	}
	slices.Reverse(taken)
	return append(slices.Concat(taken...), present...)
}

// squeeze makes the present exchange fit, as far as its results can: those of earlier rounds become notes, the oldest
// first, and then those of the last round, which the model has not seen yet, are made shorter, all alike. What the user
// asked and what the model called stays.
func squeeze(present []Message, budget int) []Message {
	over := tokens(present) - budget
	if over <= 0 {
		return present
	}
	present = slices.Clone(present)
	last := len(present) - 1
	for i := 0; i < last && over > 0; i++ {
		over -= drop(&present[i], over)
	}
	results := present[last].Results
	for limit := longest(results) * 3 / 4; over > 0 && limit >= leastResult; limit = limit * 3 / 4 {
		short := slices.Clone(results)
		for i := range short {
			short[i].Content = shorten(short[i].Content, limit)
		}
		over += cost(Message{Results: short}) - cost(present[last])
		present[last].Results = short
	}
	return present
}

// leastResult is how short, in bytes, a result is made that the model has not seen yet.
const leastResult = 256

func longest(results []Result) int {
	n := 0
	for _, r := range results {
		n = max(n, len(r.Content))
	}
	return n
}

// bare is an exchange with notes in the place of its results.
func bare(e []Message) []Message {
	e = slices.Clone(e)
	for i := range e {
		drop(&e[i], tokens(e))
	}
	return e
}

// drop puts notes in the place of a message's results, the first ones first, until it has saved so many tokens. It
// returns how many it has saved, and changes no result in place.
func drop(m *Message, enough int) int {
	saved := 0
	results := slices.Clone(m.Results)
	for i, r := range results {
		if less := estimate(r.Content) - estimate(noteDropped); less > 0 && saved < enough {
			results[i].Content = noteDropped
			saved += less
		}
	}
	m.Results = results
	return saved
}

// tokens is what messages take of the budget.
func tokens(messages []Message) int {
	n := 0
	for _, m := range messages {
		n += cost(m)
	}
	return n
}

// overhead is what a vendor adds to a message, a call or a result, in tokens; they document 3 to 10.
const overhead = 8

func cost(m Message) int {
	n := overhead + estimate(m.Text)
	for _, c := range m.Calls {
		n += overhead + estimate(c.ID) + estimate(c.Name) + estimate(string(c.Input))
	}
	for _, r := range m.Results {
		n += overhead + estimate(r.CallID) + estimate(r.Content)
	}
	for _, o := range m.Own {
		n += estimate(string(o.Body))
	}
	return n
}

// estimate is how many tokens a text has, roughly: one for four bytes of ASCII, which is what English text and code come
// to, and one for two bytes of anything else, which is on the safe side for the scripts of most languages. Vendors cut
// text differently and change how; a budget well below the model's window makes up for that.
func estimate(text string) int {
	quarters := len(text)
	for i := range len(text) {
		if text[i] >= 0x80 {
			quarters++
		}
	}
	return (quarters + 3) / 4
}
