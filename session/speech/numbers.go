package speech

import (
	"strconv"
	"strings"
)

var ones = strings.Fields(`zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
	eighteen nineteen`)

var tens = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")

var scales = []struct {
	value uint64
	name  string
}{
	{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"}, {100, "hundred"},
}

// longestNumber is how many digits are said as one number; longer ones are said digit by digit.
const longestNumber = 15

// cardinal is n in words: "one hundred twenty-three".
func cardinal(n uint64) string {
	switch {
	case n < 20:
		return ones[n]
	case n < 100 && n%10 == 0:
		return tens[n/10]
	case n < 100:
		return tens[n/10] + "-" + ones[n%10]
	}
	for _, s := range scales {
		if n >= s.value {
			words := cardinal(n/s.value) + " " + s.name
			if n%s.value > 0 {
				words += " " + cardinal(n%s.value)
			}
			return words
		}
	}
	return ""
}

var irregular = table(`one=first two=second three=third five=fifth eight=eighth nine=ninth twelve=twelfth`)

// ordinal is n in words: "one hundred twenty-third".
func ordinal(n uint64) string {
	words := cardinal(n)
	at := strings.LastIndexAny(words, " -") + 1
	last := words[at:]
	switch {
	case irregular[last] != "":
		last = irregular[last]
	case strings.HasSuffix(last, "y"):
		last = strings.TrimSuffix(last, "y") + "ieth"
	default:
		last += "th"
	}
	return words[:at] + last
}

// year is n in words as years are said: "nineteen oh five", "two thousand nine", "twenty twenty-six".
func year(n uint64) string {
	switch {
	case n < 1000 || n > 9999 || n%1000 < 10:
		return cardinal(n)
	case n%100 == 0:
		return cardinal(n/100) + " hundred"
	case n%100 < 10:
		return cardinal(n/100) + " oh " + ones[n%100]
	}
	return cardinal(n/100) + " " + cardinal(n%100)
}

// label is a number of three or four digits as it is said where it is a name: "four oh four", "eighty eighty".
func label(n uint64) string {
	switch {
	case n < 100 || n%100 == 0 && n < 1000 || n%1000 == 0:
		return cardinal(n)
	case n < 1000 && n%100 < 10:
		return cardinal(n/100) + " oh " + ones[n%100]
	case n < 1000:
		return cardinal(n/100) + " " + cardinal(n%100)
	}
	return year(n)
}

// digits says each digit of s, and nothing else of it.
func digits(s string) string {
	var words []string
	for _, c := range s {
		if '0' <= c && c <= '9' {
			words = append(words, ones[c-'0'])
		}
	}
	return strings.Join(words, " ")
}

// amount says a number as it is written: with separators of thousands, a decimal point, or neither.
func amount(s string) string {
	whole, fraction, decimal := strings.Cut(s, ".")
	plain := strings.ReplaceAll(whole, ",", "")
	words := ""
	switch {
	case plain == "":
	case len(plain) > longestNumber, len(plain) > 1 && plain[0] == '0', plain == whole && len(plain) > 9:
		words = digits(plain)
	default:
		words = cardinal(parse(plain))
	}
	if decimal {
		words += " point " + digits(fraction)
	}
	return strings.TrimSpace(words)
}

// parse reads up to 15 digits; what is none is 0.
func parse(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > longestNumber {
		return 0
	}
	return n
}

// isOne says whether a number, as it is written, is exactly one.
func isOne(s string) bool { return s == "1" }
