package dispatch

// Step is one step of the pipeline, as signal.json names it.
type Step string

// The steps, in the pipeline's order. Names and artifact files are the Signal Protocol's.
const (
	Recall      Step = "F0_RECALL"
	Triage      Step = "F1_TRIAGE"
	Resolve     Step = "F2_RESOLVE"
	Investigate Step = "F3_INVESTIGATE"
	Correlate   Step = "F4_CORRELATE"
	Review      Step = "F5_REVIEW"
	Report      Step = "F6_REPORT"
)

// about is what the package knows of a step. The protocol leaves the data of an artifact to the step; only that of
// Recall is in its text. The other shapes are ours, and nothing but the text of the answer is ever read from them.
type about struct {
	step     Step
	prompt   string // file name
	artifact string // file name
	task     string // one sentence, to whoever answers
	shape    string // of the data: a JSON object as an example
}

var table = []about{
	{Recall, "prompt-recall.md", "recall-result.json", "Say whether this is something already known, and what.",
		`{"match": true, "confidence": 0.95, "reasoning": "What is known about it."}`},
	{Triage, "prompt-triage.md", "triage-result.json", "Say what kind of matter this is and how much it matters.",
		`{"category": "question", "severity": "low", "reasoning": "Why."}`},
	{Resolve, "prompt-resolve.md", "resolve-result.json", "Choose where to look for the answer.",
		`{"selected": ["a place to look"], "reasoning": "Why there."}`},
	{Investigate, "prompt-investigate.md", "artifact.json", "Look there and say what you found.",
		`{"findings": ["what was found"], "confidence": 0.8, "reasoning": "How it was found."}`},
	{Correlate, "prompt-correlate.md", "correlate-result.json", "Say whether it is the same as something earlier.",
		`{"duplicate": false, "confidence": 0.8, "reasoning": "Why."}`},
	{Review, "prompt-review.md", "review-decision.json", "Review what the steps before have found.",
		`{"decision": "approve", "reasoning": "Why."}`},
	{Report, "prompt-report.md", "jira-draft.json", "Write down what came out.",
		`{"summary": "One line.", "description": "All of it."}`},
}

// Steps are all of them, in the pipeline's order.
func Steps() []Step {
	all := make([]Step, len(table))
	for i, a := range table {
		all[i] = a.step
	}
	return all
}

// Artifact is the name of the file that a step is answered in; empty for a step that is not there.
func (s Step) Artifact() string { return s.about().artifact }

func (s Step) known() bool { return s.Artifact() != "" }

func (s Step) about() about {
	for _, a := range table {
		if a.step == s {
			return a
		}
	}
	return about{}
}
