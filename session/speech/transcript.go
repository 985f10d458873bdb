package speech

// Transcript is what a recogniser says it has heard of one utterance so far. Each replaces the one before it, whole.
type Transcript struct {
	Text  string // plain words, may be empty
	Final bool   // nothing follows
}
