package speech

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	wholeOrDecimal = `\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?`
	monthPattern   = `(Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?|Jul[y.]?|Aug(?:ust|\.)?|Sep(?:t?\.|t|tember)?|Oct(?:ober|\.)?|` +
		`Nov(?:ember|\.)?|Dec(?:ember|\.)?)`
	dash = `\s?[–—]\s?|-`
)

// rules are tried in this order wherever a word or a symbol begins.
var rules []rule

func init() { // not where they are declared, since a link is said by all the rules
	rules = slices.Concat(markupRules, perRules, nameRules, dateRules, numberRules, wordRules)
}

// wordRules are for abbreviations and for words that are not said as they are written.
var wordRules = []rule{
	on(`([A-Za-z](?:\.[A-Za-z])+|Ph\.D|B\.Sc|M\.Sc|w\.r\.t|[A-Za-z]{1,8})\.`, abbreviation),
	on(`et al\b\.?`, func(p place, m []string) (string, bool) {
		return "and others" + stop(p, strings.TrimLeft(m[0], "etal ")), true
	}),
	on(`c\.\s?`, func(p place, _ []string) (string, bool) { return "circa ", startsWithDigit(p.after) }),
	on(`w/o(?:ut)?\b`, words("without")),
	on(`w/ ?`, words("with ")),
	on(`b/c\b`, words("because")),
	on(`(?:C|c)\+\+`, words("C plus plus")),
	on(`([CF])#`, func(_ place, m []string) (string, bool) { return m[1] + " sharp", true }),
	on(`[x×]\b`, func(p place, _ []string) (string, bool) {
		return "by", strings.HasSuffix(p.before, " ") && startsWithDigit(strings.TrimLeft(p.after, " "))
	}),
	on(`aka\b`, words("also known as")),
	on(`\.([A-Za-z][\w-]*)`, func(p place, m []string) (string, bool) { // ".env"
		return "dot " + inCode(m[1]), p.before == "" || strings.ContainsAny(p.before[len(p.before)-1:], " (\"")
	}),
	on(`[Α-Ωα-ω]`, func(p place, m []string) (string, bool) {
		return greek[strings.ToLower(m[0])], !p.touches() && !p.joined()
	}),
	on(`vs\b`, words("versus")),
	on(`@([A-Za-z][\w-]*)`, func(_ place, m []string) (string, bool) { return "at " + inCode(m[1]), true }),
	on(`--?([A-Za-z][\w-]*)`, option),
	on(`[A-Za-z]\w*(?:_\w+)+|[A-Za-z]\w*::\w+`, func(_ place, m []string) (string, bool) { return inCode(m[0]), true }),
	on(`([A-Za-z][\w.]*)\(\)`, func(_ place, m []string) (string, bool) { return inCode(m[1]), true }),
	anywhere(`-`, func(p place, _ []string) (string, bool) { return "-", joins(p) }),
	anywhere(`['’‘]`, func(p place, _ []string) (string, bool) {
		if joins(p) {
			return "'", true
		}
		return "", true
	}),
	on(`[A-Za-z]+\d+[A-Za-z0-9]*`, func(_ place, m []string) (string, bool) { return runs(m[0]), true }),
	anywhere(`–`, func(p place, _ []string) (string, bool) { return " to ", p.joined() && p.touches() }),
	anywhere(`[-–−]`, func(p place, _ []string) (string, bool) {
		left := strings.TrimRight(p.before, " ")
		right := strings.TrimPrefix(p.after, " ")
		if left == "" || left == p.before || !isDigit(int(left[len(left)-1])) || !startsWithDigit(right) {
			return "", false
		}
		from, to := lastDigits.FindString(left), digitRuns.FindString(right)
		if parse(from) < parse(to) && counts(right[len(to):]) { // "20 - 30 minutes"
			return " to ", true
		}
		return " minus ", true
	}),
	anywhere(`−`, words(" minus ")),
	anywhere(`[-–—]+`, func(p place, _ []string) (string, bool) {
		return ", ", (p.before == "" || strings.HasSuffix(p.before, " ")) && strings.HasPrefix(p.after, " ")
	}),
	anywhere(`&&`, words(" and ")),
	anywhere(`->|=>`, words(" to ")),
	anywhere(`>=`, words(" at least ")),
	anywhere(`<=`, words(" at most ")),
	anywhere(`!=`, words(" is not ")),
	anywhere(`-{2,}|={2,}|\*+`, words(" ")),
	anywhere(`[\x00-\x1f\x7f]`, words(" ")),
}

var lastDigits = regexp.MustCompile(`\d+$`)

// greek letters that stand alone are said by their names.
var greek = table(`α=alpha β=beta γ=gamma δ=delta ε=epsilon ζ=zeta η=eta θ=theta ι=iota κ=kappa λ=lambda μ=mu ν=nu ξ=xi ο=omicron π=pi ρ=rho σ=sigma
	τ=tau υ=upsilon φ=phi χ=chi ψ=psi ω=omega`)

func nothing(place, []string) (string, bool) { return "", true }

func words(say string) func(place, []string) (string, bool) {
	return func(place, []string) (string, bool) { return say, true }
}

// fullstop is the one that a rule has taken along.
func fullstop(taken bool) string {
	if taken {
		return "."
	}
	return ""
}

// stop is the full stop of an abbreviation that ends the text.
func stop(p place, period string) string {
	return fullstop(period != "" && strings.TrimSpace(p.after) == "")
}

// joined says whether a letter, a digit or a bracket stands right before.
func (p place) joined() bool {
	last, _ := utf8.DecodeLastRuneInString(p.before)
	return unicode.IsLetter(last) || unicode.IsDigit(last) || last == ')'
}

// joins says whether what stands there is within a word.
func joins(p place) bool {
	last, _ := utf8.DecodeLastRuneInString(p.before)
	next, _ := utf8.DecodeRuneInString(p.after)
	return unicode.IsLetter(next) && (unicode.IsLetter(last) || unicode.IsDigit(last))
}

// abbreviation says a word with a period of its own; other words keep theirs.
func abbreviation(p place, m []string) (string, bool) {
	word := m[1]
	full, ends := spelledOut[word], stop(p, ".")
	kind := abbreviations[word]
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(p.after, " "))
	switch {
	case strings.HasSuffix(p.before, "&"): // "M&Ms."
		return "", false
	case word == "St":
		if unicode.IsUpper(next) && !afterName(p.before) {
			return "Saint", true
		}
		return "Street" + ends, true
	case kind == beforeNumber && (unicode.IsDigit(next) || next == '#'):
		full, ends = beforeANumber[word], ""
		if full == "" {
			full = months[word]
		}
	case kind == beforeNumber:
		full = months[word]
	case kind == never:
		ends = ""
	case kind == maybe && full == "":
		full = word
	case kind != 0:
	case len(word) == 1 && unicode.IsUpper(rune(word[0])) && unicode.IsUpper(next):
		full, ends = word, ""
	case strings.Contains(word, ".") && isInitials(word):
		full = strings.ToUpper(strings.ReplaceAll(word, ".", " "))
	}
	return full + ends, full != ""
}

// afterName says whether the word before is capitalised, as that of a street is.
func afterName(before string) bool {
	words := strings.Fields(before)
	if len(words) == 0 {
		return false
	}
	c, _ := utf8.DecodeRuneInString(words[len(words)-1])
	return unicode.IsUpper(c) || unicode.IsDigit(c)
}
