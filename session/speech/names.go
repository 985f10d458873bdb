package speech

import (
	"regexp"
	"strings"
	"unicode"
)

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

// runs keeps letters and digits of a name apart: "mp3", "B2B", "IPv6".
func runs(name string) string {
	words := digitRuns.ReplaceAllStringFunc(name, func(n string) string { return " " + amount(n) + " " })
	return strings.TrimSpace(words)
}

var digitRuns = regexp.MustCompile(`\d+`)

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
