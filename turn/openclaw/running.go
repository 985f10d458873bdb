package openclaw

import "strings"

// running is a text of which OpenClaw sends, again and again, all that there is so far.
type running struct {
	said  string // as OpenClaw had it last
	tells int    // how often it grew
}

// grow returns what is new. whole is the text so far, and added its last piece; either may be missing. The whole counts
// for more: pieces are lost when OpenClaw leaves frames out for a slow reader. A text that OpenClaw corrects cannot be
// taken back once it was told, so the part that has changed follows on a line of its own, from the start of its first
// word.
func (r *running) grow(whole, added string) string {
	whole = strings.TrimSuffix(whole, "\uFFFD") // half of a character that the next frame has whole
	news := added
	switch {
	case whole == "" && added == "":
		return ""
	case whole == "":
		r.said += added
	case strings.HasPrefix(whole, r.said):
		news = whole[len(r.said):]
		r.said = whole
	case strings.HasPrefix(r.said, whole): // taken back, or late
		return ""
	default:
		news = "\n" + whole[common(r.said, whole):]
		r.said = whole
	}
	if news != "" {
		r.tells++
	}
	return news
}

// begun says whether the last growth was the first.
func (r *running) begun() bool { return r.tells == 1 }

// common is how far two texts agree, to the start of the word in which they part.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.LastIndexAny(b[:n], " \n\t") + 1
}
