package speech

import (
	"cmp"
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

func init() { // here, since links are said by the rules themselves
	rules = append(append(append(append(markupRules, nameRules...), dateRules...), numberRules...), wordRules...)
}

// markupRules are for code, links, pictures and tags.
var markupRules = []rule{
	anywhere("`+([^`]+)`+", func(p place, m []string) (string, bool) {
		if path := pathAlone.FindStringSubmatch(m[1]); path != nil {
			if name, ok := file(p, path); ok {
				return " " + name + " ", true
			}
		}
		return " " + inCode(m[1]) + " ", true
	}),
	anywhere(`!\[([^\]]*)\]\([^)\s]*[^)]*\)`, func(_ place, m []string) (string, bool) { return " image " + say(m[1]) + " ", true }),
	anywhere(`\[\^[\w-]+\]`, nothing),
	anywhere(`\[([^\]]+)\]\((?:[^()]|\([^()]*\))*\)`, func(_ place, m []string) (string, bool) { return say(m[1]), true }),
	anywhere(`\[([^\]]+)\]\[[\w -]*\]`, func(_ place, m []string) (string, bool) { return say(m[1]), true }),
	anywhere(`\]\((?:[^()]|\([^()]*\))*\)?`, nothing),
	anywhere(`<((?i:https?)://[^\s<>]+)>`, func(p place, m []string) (string, bool) { return address(p, m[1:]) }),
	anywhere(`<!--.*?-->|</?[A-Za-z][^<>]*>`, func(_ place, m []string) (string, bool) {
		return " ", !strings.Contains(m[0], "://") && !strings.Contains(m[0], "@")
	}),
	anywhere(`(?i)(?:https?|wss?|ftp|file|ssh|git)://[^\s<>"`+"`"+`]*`, address),
	anywhere(`(?i)www\.[^\s<>"`+"`"+`]+`, address),
	anywhere(`\(\)`, nothing),
	anywhere(`(?:\*\*\*|\*\*|\*|___|__|_|~~)`, emphasis),
}

// nameRules are for what is written without spaces: mail addresses, files, hosts, hashes.
var nameRules = []rule{
	on(`([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)`, func(_ place, m []string) (string, bool) {
		host, stop := strings.CutSuffix(m[2], ".")
		return inCode(m[1]) + " at " + inCode(host) + fullstop(stop), true
	}),
	on(`[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}`, func(p place, _ []string) (string, bool) { return "a long code", !p.touches() }),
	on(`(?:[0-9A-Fa-f]{2}:){3,}[0-9A-Fa-f]{2}`, func(p place, _ []string) (string, bool) { return "a long code", !p.touches() }),
	on(`[A-Za-z0-9+/=_-]{16,}`, func(p place, m []string) (string, bool) { return "a long code", isCode(m[0]) }),
	on(`(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?`+lineOfFile, file),
	on(`[A-Za-z]:(?:\\[\w.@+-]+)+`+lineOfFile, file),
	on(`[\w.@+-]+(?:/[\w.@+-]+)+/?`+lineOfFile, file),
	on(`\.?[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+`+lineOfFile, file),
	on(`\d[\w-]*\.(?:go|md|txt|wav|json|ya?ml|pdf|png|jpg|csv|log|sh|py|js|ts|html|mp3|mp4|zip|gz)\b`+lineOfFile, file),
}

// dateRules are for dates and times of day.
var dateRules = []rule{
	on(`(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?`, func(p place, m []string) (string, bool) {
		words, ok := date(m[2], m[3], m[1])
		if m[4] != "" {
			words += " at " + clock(m[4])
		}
		return words, ok && !p.touches()
	}),
	on(`(\d{1,2})/(\d{1,2})/(\d{4})`, func(p place, m []string) (string, bool) {
		words, ok := date(m[1], m[2], m[3])
		if !ok {
			words, ok = date(m[2], m[1], m[3])
		}
		return words, ok && !p.touches()
	}),
	on(`(\d{4})/(\d{1,2})/(\d{1,2})`, func(p place, m []string) (string, bool) {
		words, ok := date(m[2], m[3], m[1])
		return words, ok && !p.touches()
	}),
	on(monthPattern+`\s(\d{1,2})(?:st|nd|rd|th)?(?:(?:`+dash+`)(\d{1,2})(?:st|nd|rd|th)?)?(,?\s(\d{4}))?`, monthFirst),
	on(`(\d{1,2})(st|nd|rd|th)?(?: of)? `+monthPattern+`(?:,?\s(\d{4}))?`, func(p place, m []string) (string, bool) {
		words, ok := monthDay(m[3], m[1])
		if m[2] != "" {
			words = ordinal(parse(m[1])) + " of " + month(m[3])
		}
		if m[4] != "" {
			words += ", " + year(parse(m[4]))
		}
		return words, ok && !p.touches()
	}),
	on(monthPattern+`\s(\d{4})`, func(p place, m []string) (string, bool) { return month(m[1]) + " " + year(parse(m[2])), !p.touches() }),
	on(`(\d{1,2}:\d{2})(?:`+dash+`)(\d{1,2}:\d{2})(?:\s?([AaPp])\.?[Mm]\b)?`, func(p place, m []string) (string, bool) {
		return clock(m[1]) + " to " + clock(m[2]) + half(m[3]), isClock(m[1]) && isClock(m[2]) && !p.touches()
	}),
	on(`(\d{1,2}(?::\d{2})?)\s?([AaPp])\.?[Mm]\.?\s?[-–—]\s?(\d{1,2}(?::\d{2})?)\s?([AaPp])\.?[Mm]\b(\.?)`, func(p place, m []string) (string, bool) {
		return hourOf(m[1]) + half(m[2]) + " to " + hourOf(m[3]) + half(m[4]) + stop(p, m[5]), !p.touches()
	}),
	on(`(\d{1,2}:\d{2})(?::(\d{2}))?(?:\s?([AaPp])\.?[Mm]\b(\.?))?`, func(p place, m []string) (string, bool) {
		words := clock(m[1])
		switch {
		case m[3] != "":
			words = hourOf(m[1]) + half(m[3]) + stop(p, m[4])
		case m[2] != "" && parse(m[2]) > 0:
			words += " and " + count(strings.TrimPrefix(m[2], "0"), "second", "seconds")
		}
		return words, isClock(m[1]) && !p.touches()
	}),
	on(`(\d{1,2})(?:(?:`+dash+`)(\d{1,2}))?\s?([AaPp])\.?[Mm]\b(\.?)`, func(p place, m []string) (string, bool) {
		words := amount(m[1])
		if m[2] != "" {
			words += " to " + amount(m[2])
		}
		return words + half(m[3]) + stop(p, m[4]), !p.touches()
	}),
}

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

// wordRules are for abbreviations and for words that are not said as they are written.
var wordRules = []rule{
	on(`(`+`[A-Za-z](?:\.[A-Za-z])+`+`|Ph\.D|B\.Sc|M\.Sc|w\.r\.t|[A-Za-z]{1,8})\.`, abbreviation),
	on(`et al\b\.?`, func(p place, m []string) (string, bool) {
		return "and others" + stop(p, strings.TrimLeft(m[0], "etal ")), true
	}),
	on(`c\.\s?`, func(p place, _ []string) (string, bool) { return "circa ", startsWithDigit(p.after) }),
	on(`w/o\b`, words("without")),
	on(`w/ ?`, words("with ")),
	on(`b/c\b`, words("because")),
	on(`(?:C|c)\+\+`, words("C plus plus")),
	on(`([CF])#`, func(_ place, m []string) (string, bool) { return m[1] + " sharp", true }),
	on(`[x×]\b`, func(p place, _ []string) (string, bool) {
		return "by", strings.HasSuffix(p.before, " ") && startsWithDigit(strings.TrimLeft(p.after, " "))
	}),
	on(`aka\b`, words("also known as")),
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
		return " minus ", left != "" && left != p.before && isDigit(int(left[len(left)-1])) && startsWithDigit(strings.TrimPrefix(p.after, " "))
	}),
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

// emphasis leaves the marks out, but an asterisk between numbers multiplies.
func emphasis(p place, m []string) (string, bool) {
	left, _ := utf8.DecodeLastRuneInString(strings.TrimRight(p.before, " "))
	right, _ := utf8.DecodeRuneInString(strings.TrimLeft(p.after, " "))
	spaced := strings.HasSuffix(p.before, " ") && strings.HasPrefix(p.after, " ")
	factors := unicode.IsDigit(left) && unicode.IsDigit(right) || spaced && isFactor(left) && isFactor(right)
	if m[0] == "*" && factors {
		return " times ", true
	}
	if strings.HasPrefix(m[0], "_") && p.touches() && (unicode.IsLetter(left) || unicode.IsDigit(left)) && !strings.HasSuffix(p.before, " ") {
		return " ", true
	}
	return "", true
}

func isFactor(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '(' || c == ')' }

// address says the host of an address, and keeps the punctuation behind it.
func address(_ place, m []string) (string, bool) {
	text := strings.TrimRight(m[0], `.,;:!?'"*_)]}`)
	tail := strings.Trim(m[0][len(text):], `'"*_)]}`)
	_, host, found := strings.Cut(text, "://")
	if !found {
		host = text
	}
	if at := strings.IndexAny(host, `/?#\`); at >= 0 {
		host = host[:at]
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	host, _, _ = strings.Cut(host, ":")
	host = strings.TrimPrefix(strings.ToLower(host), "www.")
	return " " + inCode(host) + tail, true
}

// isCode tells a hash or a key from a long word.
func isCode(s string) bool {
	numbers, letters := 0, 0
	for _, c := range s {
		switch {
		case unicode.IsDigit(c):
			numbers++
		case unicode.IsLetter(c):
			letters++
		}
	}
	parts := strings.FieldsFunc(s, func(c rune) bool { return c == '-' || c == '_' || c == '/' })
	return numbers >= 3 && letters >= 3 && len(parts) == 1
}

// lineOfFile is where in a file something stands: ":42", ":42:7".
const lineOfFile = `(?::(\d+)(?::\d+)?)?`

var pathAlone = regexp.MustCompile(`^[~\w.@+-]*(?:/[\w.@+-]+)+` + lineOfFile + `$`)

var extension = regexp.MustCompile(`\.[A-Za-z][A-Za-z0-9]{0,9}$`)

// file says the last name of a path, and the line. A single slash between words is no path: "and/or".
func file(_ place, m []string) (string, bool) {
	whole, line := m[0], ""
	if m[1] != "" {
		whole, _, _ = strings.Cut(whole[2:], ":") // past that of a Windows drive
		whole, line = m[0][:2+len(whole)], " line "+amount(m[1])
	}
	path := strings.TrimRight(whole, ".-+@")
	stops := strings.Trim(whole[len(path):], "-+@")
	if _, known := abbreviations[path]; known || path == "" || isNumeric(path) || isInitials(path) {
		return "", false
	}
	path = strings.ReplaceAll(path, `\`, "/")
	rooted := strings.ContainsAny(path[:1], "/~.")
	folder := strings.HasSuffix(path, "/")
	deep := strings.Count(strings.Trim(path, "/"), "/") >= 2
	if !rooted && !folder && !deep && !extension.MatchString(path) {
		return "", false
	}
	if deep && !rooted && !folder && !extension.MatchString(path) { // it may as well be "yes/no/maybe"
		return inCode(path) + stops, true
	}
	name := strings.TrimRight(path, "/")
	name = inCode(name[strings.LastIndexByte(name, '/')+1:])
	return name + line + stops, name != ""
}

// isNumeric says whether a text is a number, a date or a fraction rather than a path.
func isNumeric(s string) bool { return strings.Trim(s, "0123456789/.,-") == "" }

func month(name string) string { return months[strings.TrimSuffix(name, ".")] }

// monthDay is a day of a month, as in "March fifth".
func monthDay(name, day string) (string, bool) {
	d := parse(day)
	return month(name) + " " + ordinal(d), month(name) != "" && 1 <= d && d <= 31
}

// monthFirst says "Nov. 21", "May 3-5", "March 1st, 2026".
func monthFirst(p place, m []string) (string, bool) {
	words, ok := monthDay(m[1], m[2])
	if m[3] != "" {
		words += " to " + ordinal(parse(m[3]))
	}
	if m[4] != "" {
		words += ", " + year(parse(m[5]))
	}
	return words, ok && !p.touches() && !(m[4] == "" && strings.HasPrefix(p.after, ":"))
}

// date is a date of three numbers.
func date(month, day, inYear string) (string, bool) {
	m := parse(month)
	if m < 1 || m > 12 {
		return "", false
	}
	words, ok := monthDay(monthNames[m-1], day)
	return words + ", " + year(parse(inYear)), ok
}

func isClock(s string) bool {
	hour, minute, _ := strings.Cut(s, ":")
	return parse(hour) <= 24 && parse(minute) < 60
}

// clock is a time of day: "nine oh five", "ten o'clock", "fourteen thirty".
func clock(s string) string {
	h, m, _ := strings.Cut(s, ":")
	hour, minute := parse(h), parse(m)
	switch {
	case minute == 0 && hour == 0:
		return "midnight"
	case minute == 0 && hour <= 12:
		return cardinal(hour) + " o'clock"
	case minute == 0:
		return cardinal(hour) + " hundred"
	case minute < 10:
		return cardinal(hour) + " oh " + cardinal(minute)
	}
	return cardinal(hour) + " " + cardinal(minute)
}

// hourOf is a time of day before AM or PM.
func hourOf(s string) string {
	if strings.Contains(s, ":") {
		return strings.TrimSuffix(clock(s), " o'clock")
	}
	return amount(s)
}

// half is AM or PM.
func half(letter string) string {
	if letter == "" {
		return ""
	}
	return " " + strings.ToUpper(letter) + "M"
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

// runs keeps letters and digits of a name apart: "mp3", "B2B", "IPv6".
func runs(name string) string {
	words := digitRuns.ReplaceAllStringFunc(name, func(n string) string { return " " + amount(n) + " " })
	return strings.TrimSpace(words)
}

var digitRuns = regexp.MustCompile(`\d+`)

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

// hash spells the short form of a hash.
func hash(p place, m []string) (string, bool) {
	if p.touches() || isNumeric(m[0]) || strings.IndexFunc(m[0], unicode.IsDigit) < 0 {
		return "", false
	}
	var parts []string
	for _, c := range m[0] {
		if isDigit(int(c)) {
			parts = append(parts, ones[c-'0'])
		} else {
			parts = append(parts, string(c))
		}
	}
	return strings.Join(parts, " "), true
}

// abbreviation says a word with a period of its own; other words keep theirs.
func abbreviation(p place, m []string) (string, bool) {
	word := m[1]
	full, ends := spelledOut[word], stop(p, ".")
	kind := abbreviations[word]
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(p.after, " "))
	switch {
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

// option says a flag of a command.
func option(p place, m []string) (string, bool) {
	if p.before != "" && !strings.HasSuffix(p.before, " ") {
		return "", false
	}
	dashes := "dash "
	if strings.HasPrefix(m[0], "--") {
		dashes = "dash dash "
	}
	return dashes + inCode(m[1]), true
}
