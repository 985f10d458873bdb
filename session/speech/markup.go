package speech

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
	anywhere(`\$\$?([^$\d\s][^$]*)\$\$?`, func(_ place, m []string) (string, bool) {
		return formula(m[1]), !strings.HasSuffix(m[1], " ") && (len(m[1]) == 1 || strings.ContainsAny(m[1], `\^_=+`))
	}),
	anywhere(`\\\((.+?)\\\)|\\\[(.+?)\\\]`, func(_ place, m []string) (string, bool) { return formula(m[1] + m[2]), true }),
	anywhere(`&(?:[A-Za-z]{2,8}|#\d{1,6});`, func(_ place, m []string) (string, bool) {
		c := html.UnescapeString(m[0])
		if len(c) >= len(m[0]) { // none of HTML's
			return "", false
		}
		return say(c), true
	}),
	anywhere(`\(\)`, nothing),
	anywhere(`(?:\*\*\*|\*\*|\*|___|__|_|~~)`, emphasis),
}

var (
	over    = regexp.MustCompile(`\\d?frac\{([^{}]*)\}\{([^{}]*)\}`)
	root    = regexp.MustCompile(`\\sqrt\{([^{}]*)\}`)
	command = regexp.MustCompile(`\\([A-Za-z]+)`)
)

// mathNames are commands that are not said as they are written; those that only place something say nothing.
var mathNames = table(`cdot=times leq=at_most le=at_most geq=at_least ge=at_least neq=is_not ne=is_not pm=plus_or_minus infty=infinity int=integral div=divided_by approx=about
	to=to rightarrow=to left= right= text= mathrm= mathbf= quad= ldots= dots= cdots=`)

// formula says LaTeX, as far as it is simple.
func formula(text string) string {
	text = over.ReplaceAllString(text, "$1 over $2")
	text = root.ReplaceAllString(text, "root of $1")
	text = command.ReplaceAllStringFunc(text, func(c string) string {
		if name, ok := mathNames[c[1:]]; ok {
			return " " + name + " "
		}
		return " " + c[1:] + " "
	})
	return " " + say(strings.NewReplacer("_", " ", `\`, " ", "{", " ", "}", " ").Replace(text)) + " "
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
