package speech

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// numberRules are for all other numbers.
var numberRules = []rule{
	on(`(?:(\d+)h ?)?(?:(\d+)m(?:in)? ?)?(?:(\d+)s)?`, duration),
	on(`v(\d+(?:\.\d+)*)`, func(p place, m []string) (string, bool) { return "version " + dotted(m[1], " point "), !p.touches() }),
	on(`(\d+(?:\.\d+){3})(?::(\d+)|/(\d+))?`, func(p place, m []string) (string, bool) {
		words := dotted(m[1], " dot ")
		if m[2] != "" {
			words += " port " + label(parse(m[2]))
		}
		if m[3] != "" {
			words += " slash " + amount(m[3])
		}
		return words, !p.touches()
	}),
	on(`\d+(?:\.\d+){2,}`, func(p place, m []string) (string, bool) { return dotted(m[0], " point "), !p.touches() }),
	on(`(\d+)[.](\d+)[.]x\b`, func(_ place, m []string) (string, bool) {
		return amount(m[1]) + " point " + amount(m[2]) + " point x", true
	}),
	on(`\+?\(?\d{1,4}\)?(?:[\s-]\(?\d{2,4}\)?){1,4}(?:[\s-]\d{3,7})`, phone),
	on(`\+\d{7,15}`, func(_ place, m []string) (string, bool) { return "plus " + digits(m[0]), true }),
	on(`\d{3}-\d{4}`, func(p place, m []string) (string, bool) { return inGroups(m[0]), !p.touches() && !isRange(m[0]) }),
	on(`\d+(?:-\d+){2,}`, func(p place, m []string) (string, bool) { return inGroups(m[0]), !p.touches() }),
	anywhere(`[-−]?([$€£¥₹])(`+wholeOrDecimal+`)(?:(?:`+dash+`)[$€£¥₹]?(`+wholeOrDecimal+`))?(?:\s?(thousand|million|billion|trillion|[kKMB]|bn|m)\b)?`, money),
	on(`(`+wholeOrDecimal+`)\s?([€£])`, func(_ place, m []string) (string, bool) { return sum(m[2], m[1], ""), true }),
	on(`(\d+)(st|nd|rd|th)\b`, func(_ place, m []string) (string, bool) { return ordinal(parse(m[1])), len(m[1]) <= longestNumber }),
	anywhere(`['’]?(\d{2}|\d{4})['’]?s\b`, decade),
	on(`(\d+(?:\.\d+)?)(?: / |/)(\d+(?:\.\d+)?)`, outOf),
	anywhere(`([-−]?)(`+wholeOrDecimal+`|\.\d+)(?:(?:`+dash+`)(`+wholeOrDecimal+`))?(\s?|-)(`+unitPattern()+`)(\.?)`, measure),
	on(`(`+wholeOrDecimal+`)(?:`+dash+`)(`+wholeOrDecimal+`)`, numberRange),
	on(`(\d{1,4}) ?[x×] ?(\d{1,4})`, func(p place, m []string) (string, bool) {
		return label(parse(m[1])) + " by " + label(parse(m[2])), !p.touches() && !strings.HasPrefix(p.after, "^")
	}),
	on(`(\d+):(\d+)`, func(p place, m []string) (string, bool) { return amount(m[1]) + " to " + amount(m[2]), !p.touches() }),
	on(`(\d{1,3})/(\d{1,3})`, fraction),
	on(`(\d{1,2})['′](\d{1,2})(?:["″])`, func(_ place, m []string) (string, bool) { return amount(m[1]) + " foot " + amount(m[2]), true }),
	on(`#(\d+)`, func(p place, m []string) (string, bool) { return "number " + amount(m[1]), !p.touches() }),
	anywhere(`#([A-Za-z]\w*)`, func(_ place, m []string) (string, bool) { return "hashtag " + inCode(m[1]), true }),
	anywhere(`[~≈]\s?`, func(p place, _ []string) (string, bool) {
		return " about ", strings.IndexFunc(p.after, func(c rune) bool { return unicode.IsDigit(c) || unicode.Is(unicode.Sc, c) }) == 0
	}),
	on(`[0-9a-f]{7,15}`, hash),
	anywhere(`[-−](`+wholeOrDecimal+`|\.\d+)`, negative),
	on(`(`+wholeOrDecimal+`|\.\d+)`, plainNumber),
	anywhere(`\d+`, func(_ place, m []string) (string, bool) { return " " + amount(m[0]) + " ", true }),
}

// count is a number with what it counts.
func count(n, one, many string) string {
	if isOne(n) {
		return "one " + one
	}
	return amount(n) + " " + many
}

// dotted says the numbers between dots one by one.
func dotted(s, between string) string {
	var parts []string
	for part := range strings.SplitSeq(s, ".") {
		parts = append(parts, amount(part))
	}
	return strings.Join(parts, between)
}

// inGroups says digits one by one, with a pause between groups.
func inGroups(s string) string {
	var groups []string
	for group := range strings.FieldsFuncSeq(s, func(c rune) bool { return c < '0' || c > '9' }) {
		groups = append(groups, digits(group))
	}
	return strings.Join(groups, ", ")
}

// phone says what has as many digits as a telephone number, in groups.
func phone(p place, m []string) (string, bool) {
	n := 0
	for _, c := range m[0] {
		if isDigit(int(c)) {
			n++
		}
	}
	lead := ""
	if m[0][0] == '+' {
		lead = "plus "
	}
	likely := m[0][0] == '+' || m[0][0] == '(' || strings.Count(m[0], "-") >= 2
	return lead + inGroups(m[0]), likely && n >= 7 && n <= 15 && !p.touches()
}

// money says an amount, or a range, of a currency.
func money(_ place, m []string) (string, bool) {
	minus := ""
	if strings.HasPrefix(m[0], "-") || strings.HasPrefix(m[0], "−") {
		minus = "minus "
	}
	if m[3] != "" {
		return minus + amount(m[2]) + " to " + sum(m[1], m[3], m[4]), true
	}
	return minus + sum(m[1], m[2], m[4]), true
}

var magnitudes = table(`k=thousand K=thousand M=million m=million B=billion bn=billion thousand=thousand million=million billion=billion trillion=trillion`)

// sum is one amount of money.
func sum(sign, n, magnitude string) string {
	c := currencies[sign]
	whole, cents, decimal := strings.Cut(n, ".")
	switch {
	case magnitude != "":
		return amount(n) + " " + magnitudes[magnitude] + " " + c.many
	case decimal && len(cents) != 2:
		return amount(n) + " " + c.many
	case !decimal || cents == "00":
		return count(whole, c.one, c.many)
	case whole == "0":
		return count(strings.TrimPrefix(cents, "0"), c.cent, c.cents)
	}
	return count(whole, c.one, c.many) + " and " + count(strings.TrimPrefix(cents, "0"), c.cent, c.cents)
}

// decade says "1990s" and "'90s".
func decade(p place, m []string) (string, bool) {
	n := parse(m[1])
	if len(m[1]) == 2 && isDigit(int(m[0][0])) && !beforeDecade[p.last()] { // "90s" may be seconds
		return "", false
	}
	if n%10 != 0 || len(m[1]) == 4 && n < 1000 {
		return "", false
	}
	words := year(n)
	if n == 0 {
		return "two thousands", true
	}
	if stem, ok := strings.CutSuffix(words, "y"); ok {
		return stem + "ies", true
	}
	return words + "s", true
}

// isRange says whether two numbers with a dash between them grow.
func isRange(s string) bool {
	a, b, _ := strings.Cut(s, "-")
	return len(a) == 4 && len(b) == 4 && parse(a) < parse(b)
}

// numberRange says "5-10 km" and "1914–1918".
func numberRange(p place, m []string) (string, bool) {
	if p.touches() || strings.HasPrefix(p.after, "-") {
		return "", false
	}
	if isYear(m[1]) && isYear(m[2]) {
		return year(parse(m[1])) + " to " + year(parse(m[2])), true
	}
	if isYear(m[1]) && len(m[2]) == 2 {
		return year(parse(m[1])) + " to " + amount(m[2]), true
	}
	return amount(m[1]) + " to " + amount(m[2]), true
}

func isYear(s string) bool { n := parse(s); return len(s) == 4 && 1100 <= n && n <= 2099 }

var parts = map[uint64]unit{2: {"half", "halves"}, 3: {"third", "thirds"}, 4: {"quarter", "quarters"}, 5: {"fifth", "fifths"}, 8: {"eighth", "eighths"}, 10: {"tenth", "tenths"}}

// fraction says "3/4" as a part, and leaves other pairs their slash.
func fraction(p place, m []string) (string, bool) {
	if p.touches() || strings.HasPrefix(p.after, "/") {
		return "", false
	}
	a, b := parse(m[1]), parse(m[2])
	if part, ok := parts[b]; ok && 0 < a && a < b {
		return count(m[1], part.one, part.many), true
	}
	if a < b || a == b && a > 50 {
		return amount(m[1]) + " of " + amount(m[2]), true
	}
	return amount(m[1]) + " " + amount(m[2]), true
}

// negative says a minus that stands before a number and not behind a word.
func negative(p place, m []string) (string, bool) { return "minus " + amount(m[1]), !p.joined() }

func startsWithDigit(s string) bool { return s != "" && isDigit(int(s[0])) }

// unitPattern matches the symbol of any unit, the longest first.
func unitPattern() string {
	var symbols []string
	for symbol := range units {
		symbols = append(symbols, regexp.QuoteMeta(symbol))
	}
	slices.SortFunc(symbols, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return strings.Join(symbols, "|")
}

// measure says a number, or a range, with its unit: "-5 °C", "10-20 km", "a 5-min walk", "6 ft. tall".
func measure(p place, m []string) (string, bool) {
	sign, from, to, gap, symbol, period := m[1], m[2], m[3], m[4], m[5], m[6]
	if p.touches() || gap != "" && touching[symbol] || p.joined() || strings.HasPrefix(p.after, "/") {
		return "", false
	}
	words := amount(from)
	if sign != "" {
		words = "minus " + words
	}
	if to != "" {
		words += " to " + amount(to)
	}
	if next, _ := utf8.DecodeRuneInString(strings.TrimLeft(p.after, " ")); unicode.IsLower(next) {
		period = ""
	}
	u := units[symbol]
	if gap == "-" || to == "" && isOne(from) {
		return words + " " + u.one + period, true
	}
	return words + " " + u.many + period, true
}

// duration says "1h 30m" and "3m20s"; a unit alone is a measure.
func duration(p place, m []string) (string, bool) {
	var parts []string
	for i, name := range []string{"hour", "minute", "second"} {
		if m[i+1] != "" {
			parts = append(parts, count(m[i+1], name, name+"s"))
		}
	}
	return strings.Join(parts, " ") + strings.Repeat(" ", len(m[0])-len(strings.TrimRight(m[0], " "))), len(parts) > 1 && !p.touches()
}

// outOf says "4.5/5" and "4 / 5"; "4/5" is a fraction.
func outOf(p place, m []string) (string, bool) {
	spaced := strings.Contains(m[0], " ")
	return amount(m[1]) + " out of " + amount(m[2]), !p.touches() && (spaced || strings.Contains(m[1], "."))
}

// Words that a year follows, and words that a number follows which is a name.
var (
	beforeYear   = set("c in since by from of until till year before after during around circa late early mid to spring summer autumn fall winter and or")
	beforeDecade = set("the early late mid her his their my your our and or to")
	beforeDigits = set("call dial")
	beforeLabel  = set("port ports error errors http status code room flight gate bus route highway channel area model boeing")
	function     = set("is was has this its as thus and or but the a an to in on at by for with when where while that which who it he she they we i you " +
		"were are had will would could should may might can did does do of from until after before because so then if not")
)

// plainNumber says a number by what is around it: a year, a name, or an amount.
func plainNumber(p place, m []string) (string, bool) {
	last := p.last()
	switch {
	case p.touches():
		return amount(m[1]) + " ", true
	case beforeDigits[last] && len(m[1]) == 3:
		return digits(m[1]), true
	case beforeLabel[last] && (len(m[1]) == 3 || len(m[1]) == 4) && !strings.ContainsAny(m[1], ".,"):
		return label(parse(m[1])), true
	case isYear(m[1]) && (beforeYear[last] || m[1] >= "1900" && !counts(p.after)):
		return year(parse(m[1])), true
	}
	return amount(m[1]), true
}

// counts says whether a word in small letters follows that may be what a number counts.
func counts(after string) bool {
	word := strings.TrimLeft(after, " ")
	if word == after {
		return false
	}
	end := strings.IndexFunc(word, func(c rune) bool { return !unicode.IsLetter(c) })
	if end < 0 {
		end = len(word)
	}
	c, _ := utf8.DecodeRuneInString(word)
	return unicode.IsLower(c) && !function[word[:end]]
}
