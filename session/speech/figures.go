package speech

import (
	"cmp"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// perRules come before those for names, which take what begins with a slash for a path.
var perRules = []rule{anywhere(`/(`+perPattern+`)`, perUnit)}

// numberRules are for all other numbers.
var numberRules = []rule{
	on(`(?:(\d+)h ?)?(?:(\d+)m(?:in)? ?)?(?:(\d+)s)?`, duration),
	on(`(\d(?:\.\d+)?)[eE]([-+−]?)(\d{1,3})\b`, scientific),
	on(`(\d+(?:\.\d+)?) ?[x×] ?10\^`, func(_ place, m []string) (string, bool) { return amount(m[1]) + " times ten to the ", true }),
	anywhere(`([⁺⁻]?)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)`, superscript),
	anywhere(`\^(?:2|\{2\})`, func(p place, _ []string) (string, bool) { return " squared ", !p.touches() }),
	anywhere(`\^(?:3|\{3\})`, func(p place, _ []string) (string, bool) { return " cubed ", !p.touches() }),
	anywhere(`[-–−]`, func(p place, _ []string) (string, bool) {
		return " to ", startsWithDigit(p.after) && measured.MatchString(p.before[max(0, len(p.before)-aside):])
	}),
	on(`(480|720|1080|1440|2160)p\b`, func(_ place, m []string) (string, bool) { return label(parse(m[1])) + " p", true }),
	on(`(\d{1,3}) (\d{1,2})/(\d{1,2})\b`, mixed),
	on(`(\d{1,3})([½¼¾⅓⅔⅛⅜⅝⅞])`, func(_ place, m []string) (string, bool) {
		c, _ := utf8.DecodeRuneInString(m[2])
		return amount(m[1]) + " and" + symbols[c], true
	}),
	on(`(?:nº|Nº|n°|N°|№)\s?`, func(p place, _ []string) (string, bool) { return "number ", startsWithDigit(p.after) }),
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
	on(`\d{3}\.\d{3}\.\d{4}`, func(p place, m []string) (string, bool) { return inGroups(m[0]), !p.touches() }),
	on(`\d+(?:\.\d+){2,}`, func(p place, m []string) (string, bool) { return dotted(m[0], " point "), !p.touches() }),
	on(`(\d+)[.](\d+)[.]x\b`, func(_ place, m []string) (string, bool) {
		return amount(m[1]) + " point " + amount(m[2]) + " point x", true
	}),
	on(`\+?\(?\d{1,4}\)?(?:[\s-]\(?\d{2,4}\)?){1,4}(?:[\s-]\d{3,7})`, phone),
	on(`0\d{1,4}[ /-]\d{3,8}(?:[ -]\d{2,6})*`, func(p place, m []string) (string, bool) {
		return inGroups(m[0]), len(digitRuns.FindString(m[0])) < 6 && countDigits(m[0]) >= 8 && !p.touches()
	}),
	on(`\+\d{7,15}`, func(_ place, m []string) (string, bool) { return "plus " + digits(m[0]), true }),
	on(`\d{3}-\d{4}`, func(p place, m []string) (string, bool) { return inGroups(m[0]), !p.touches() && !isRange(m[0]) }),
	on(`\d+(?:-\d+){2,}`, func(p place, m []string) (string, bool) { return inGroups(m[0]), !p.touches() }),
	on(`(US|A|AU|C|CA|NZ|HK|S)\$(`+wholeOrDecimal+`)(?:\s?(thousand|million|billion|trillion|[kKMB]|bn|m)\b)?`, func(_ place, m []string) (string, bool) {
		return strings.Replace(sum("$", m[2], m[3]), "dollar", dollars[m[1]]+"dollar", 1), true
	}),
	anywhere(`[-−]?([$€£¥₹])(`+wholeOrDecimal+`|\.\d+)(?:(?:`+dash+`)[$€£¥₹]?(`+wholeOrDecimal+`))?(?:\s?(thousand|million|billion|trillion|[kKMB]|bn|m)\b)?`, money),
	on(`(`+wholeOrDecimal+`)\s?([€£])`, func(_ place, m []string) (string, bool) { return sum(m[2], m[1], ""), true }),
	on(`(\d{1,3}(?:,\d{3})+|\d+)(st|nd|rd|th)\b`, func(_ place, m []string) (string, bool) {
		return ordinal(parse(strings.ReplaceAll(m[1], ",", ""))), len(m[1]) <= longestNumber
	}),
	anywhere(`['’]?(\d{2}|\d{4})['’]?s\b`, decade),
	on(`(\d+(?:\.\d+)?)(?: / |/)(\d+(?:\.\d+)?)`, outOf),
	anywhere(`([-−]?)(`+wholeOrDecimal+`|\.\d+)(?:(?:`+dash+`)(`+wholeOrDecimal+`))?(\s?|-)(`+unitPattern()+`)(\.?)`, measure),
	on(`(`+wholeOrDecimal+`)(?:`+dash+`)(`+wholeOrDecimal+`)`, numberRange),
	on(`(\d{1,4}) ?[x×] ?(\d{1,4})`, func(p place, m []string) (string, bool) {
		if p.equals() {
			return amount(m[1]) + " times " + amount(m[2]), true
		}
		return label(parse(m[1])) + " by " + label(parse(m[2])), !p.touches() && !strings.HasPrefix(p.after, "^")
	}),
	on(`(\d+):(\d+)`, func(p place, m []string) (string, bool) { return amount(m[1]) + " to " + amount(m[2]), !p.touches() }),
	on(`9/11|24/7/365`, func(p place, m []string) (string, bool) { return slashed[m[0]], !p.touches() }),
	on(`(\d{1,3})/(\d{1,3})`, fraction),
	on(`(\d+(?:\.\d+)?)["″]`, inches),
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

var quoteMarks = regexp.MustCompile(`(?:^|\D)"`)

// inches says `6"`, unless that closes a quotation.
func inches(p place, m []string) (string, bool) {
	quoted := len(quoteMarks.FindAllString(p.before, -1))%2 == 1
	if article[p.last()] || isOne(m[1]) {
		return amount(m[1]) + " inch", !quoted
	}
	return amount(m[1]) + " inches", !quoted
}

// slashed are numbers that are said in a way of their own.
var slashed = table(`9/11=nine_eleven 24/7/365=twenty-four_seven_three_sixty-five`)

var (
	measured = regexp.MustCompile(`\d\s?(?:` + unitPattern() + `)$`)
	state    = regexp.MustCompile(`(?:^|, )[A-Z]{2} $`)
	per      = regexp.MustCompile(`^/(?:` + perPattern + `)(?:[^A-Za-z]|$)`)
)

// perWord is what an amount may be counted by, behind a slash: "$3/month".
var perWord = table(`s=second sec=second second=second min=minute minute=minute h=hour hr=hour hour=hour day=day night=night wk=week week=week mo=month
	month=month quarter=quarter yr=year year=year person=person user=user seat=seat item=item token=token
	g=gram kg=kilogram lb=pound L=liter l=liter mL=milliliter ml=milliliter gal=gallon m²=square_meter m³=cubic_meter km=kilometer mi=mile mile=mile
	MB=megabyte GB=gigabyte TB=terabyte kWh=kilowatt_hour`)

var perPattern = alternatives(maps.Keys(perWord))

// perUnit says "/s" behind what has been counted: "10k req/s".
func perUnit(p place, m []string) (string, bool) {
	return " per " + perWord[m[1]], !p.touches() && !strings.HasPrefix(p.after, "/") && counted.MatchString(p.before)
}

var counted = regexp.MustCompile(`[\d$€£]\S*(?: [^\s/]+)?$`)

// equals says whether an equals sign follows.
func (p place) equals() bool { return strings.HasPrefix(strings.TrimLeft(p.after, " "), "=") }

// scientific says "6.02e23".
func scientific(p place, m []string) (string, bool) {
	return amount(m[1]) + " times ten to the " + signed(m[2]) + amount(m[3]), !p.touches()
}

// superscript says an exponent; the square and the cube are symbols.
func superscript(_ place, m []string) (string, bool) {
	n := ""
	for _, c := range m[2] {
		n += strconv.Itoa(slices.Index([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹"), c))
	}
	return " to the " + signed(m[1]) + amount(n) + " ", m[0] != "²" && m[0] != "³"
}

func signed(sign string) string {
	if sign == "-" || sign == "−" || sign == "⁻" {
		return "minus "
	}
	return ""
}

// mixed says "1 1/2".
func mixed(p place, m []string) (string, bool) {
	a, b := parse(m[2]), parse(m[3])
	part, ok := parts[b]
	return amount(m[1]) + " and " + count(m[2], part.one, part.many), ok && 0 < a && a < b && !p.touches() && !strings.HasPrefix(p.after, "/")
}

func countDigits(s string) (n int) {
	for _, c := range s {
		if isDigit(int(c)) {
			n++
		}
	}
	return n
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
	n := countDigits(m[0])
	lead := ""
	if m[0][0] == '+' {
		lead = "plus "
	}
	likely := m[0][0] == '+' || m[0][0] == '(' || strings.Count(m[0], "-") >= 2
	return lead + inGroups(m[0]), likely && n >= 7 && n <= 15 && !p.touches()
}

// dollars are whose they are.
var dollars = table(`A=Australian_ AU=Australian_ C=Canadian_ CA=Canadian_ NZ=New_Zealand_ HK=Hong_Kong_ S=Singapore_`)

// money says an amount, or a range, of a currency.
func money(p place, m []string) (string, bool) {
	if next := strings.TrimLeft(p.after, " "); article[p.last()] && next != p.after && next != "" && isLetter(int(next[0])) && !strings.Contains(m[0], ".") {
		one := currencies[m[1]] // "a $5 bill"
		one.many = one.one
		return amounted(one, m), true
	}
	return amounted(currencies[m[1]], m), true
}

func amounted(c currency, m []string) string {
	minus := ""
	if strings.HasPrefix(m[0], "-") || strings.HasPrefix(m[0], "−") {
		minus = "minus "
	}
	if m[3] != "" {
		return minus + amount(m[2]) + " to " + c.sum(m[3], m[4])
	}
	return minus + c.sum(m[2], m[4])
}

var magnitudes = table(`k=thousand K=thousand M=million m=million B=billion bn=billion thousand=thousand million=million billion=billion trillion=trillion`)

// sum is one amount of money.
func sum(sign, n, magnitude string) string { return currencies[sign].sum(n, magnitude) }

func (c currency) sum(n, magnitude string) string {
	whole, cents, decimal := strings.Cut(n, ".")
	switch {
	case magnitude != "":
		return amount(n) + " " + magnitudes[magnitude] + " " + c.many
	case decimal && len(cents) != 2:
		return amount(n) + " " + c.many
	case !decimal || cents == "00":
		return count(whole, c.one, c.many)
	case whole == "0", whole == "":
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

// numberRange says "5-10 km" and "1914–1918", and "5-3=2".
func numberRange(p place, m []string) (string, bool) {
	if p.equals() {
		return amount(m[1]) + " minus " + amount(m[2]), true
	}
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

var parts = map[uint64]unit{2: {"half", "halves"}, 3: {"third", "thirds"}, 4: {"quarter", "quarters"}, 5: {"fifth", "fifths"}, 8: {"eighth", "eighths"}, 10: {"tenth", "tenths"}, 16: {"sixteenth", "sixteenths"}}

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

// unitPattern matches the symbol of any unit.
func unitPattern() string { return alternatives(maps.Keys(units)) }

// alternatives matches any of the words, the longest first.
func alternatives(words iter.Seq[string]) string {
	list := slices.SortedFunc(words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for i, word := range list {
		list[i] = regexp.QuoteMeta(word)
	}
	return strings.Join(list, "|")
}

// measure says a number, or a range, with its unit: "-5 °C", "10-20 km", "a 5-min walk", "6 ft. tall".
func measure(p place, m []string) (string, bool) {
	sign, from, to, gap, symbol, period := m[1], m[2], m[3], m[4], m[5], m[6]
	if p.touches() || gap != "" && touching[symbol] || p.joined() || strings.HasPrefix(p.after, "/") && !per.MatchString(p.after) {
		return "", false
	}
	if len(symbol) == 1 && gap == "" && beforeName[p.last()] { // "room 4B"
		return "", false
	}
	words := amount(from)
	if sign != "" {
		words = "minus " + words
	}
	if to != "" {
		words += " to " + amount(to)
	}
	if next, _ := utf8.DecodeRuneInString(strings.TrimLeft(p.after, " ")); next != utf8.RuneError && !unicode.IsUpper(next) {
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
	beforeName   = set("apartment apt room unit gate seat suite flat block row floor door platform")
	article      = set("a an")
	beforeLabel  = set("iso rfc ieee din port ports error errors http status code room flight gate bus route highway channel area model boeing")
	function     = set("is was has this its as thus and or but the a an to in on at by for with when where while that which who it he she they we i you " +
		"were are had will would could should may might can did does do of from until after before because so then if not")
)

// plainNumber says a number by what is around it: a year, a name, or an amount.
func plainNumber(p place, m []string) (string, bool) {
	last := p.last()
	switch {
	case p.touches():
		return amount(m[1]) + " ", true
	case len(m[1]) == 5 && state.MatchString(p.before): // "Springfield, IL 62704"
		return digits(m[1]), true
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
