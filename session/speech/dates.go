package speech

import (
	"regexp"
	"strings"
)

// dateRules are for dates and times of day.
var dateRules = []rule{
	on(dayPattern+`\.?(?:`+dash+`)`+dayPattern+`\b`, func(p place, m []string) (string, bool) {
		return days[m[1]] + " to " + days[m[2]], !strings.HasPrefix(p.after, "-")
	}),
	on(dayPattern+`\b\.?(,?)`, func(p place, m []string) (string, bool) { return days[m[1]] + m[2], datedAfter.MatchString(p.after) }),
	on(`(\d{1,2})h(\d{2})\b`, func(_ place, m []string) (string, bool) {
		at := m[1] + ":" + m[2]
		return clock(at), isClock(at)
	}),
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
	on(`(\d{1,2})/(\d{1,2})/(\d{2})`, func(p place, m []string) (string, bool) {
		words, ok := date(m[1], m[2], "20"+m[3])
		if !ok {
			words, ok = date(m[2], m[1], "20"+m[3])
		}
		return words, ok && !p.touches() && !strings.HasPrefix(p.after, "/")
	}),
	on(`(\d{4})-(0[1-9]|1[0-2])`, func(p place, m []string) (string, bool) {
		grows := m[2][0] != '0' && parse(m[2]) > parse(m[1])%100 // "2009-12" is years
		return monthNames[parse(m[2])-1] + " " + year(parse(m[1])), isYear(m[1]) && !grows && !p.touches() && !strings.HasPrefix(p.after, "-")
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

const dayPattern = `(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)`

var days = table(`Mon=Monday Tue=Tuesday Tues=Tuesday Wed=Wednesday Thu=Thursday Thur=Thursday Thurs=Thursday Fri=Friday Sat=Saturday Sun=Sunday`)

// datedAfter is what follows the short name of a day, for that is often a word: "Sat down".
var datedAfter = regexp.MustCompile(`^ (?:\d|` + monthPattern + ` \d)`)

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
