package main

import (
	"strings"
	"unicode"
)

// words are those of a text, without case and punctuation.
func words(text string) []string {
	text = strings.ReplaceAll(strings.ToLower(text), "’", "'")
	return strings.FieldsFunc(text, func(r rune) bool { return r != '\'' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// distance is how many words have to be put in, taken out or replaced to make one of the other.
func distance(said, heard []string) int {
	row := make([]int, len(heard)+1)
	for j := range row {
		row[j] = j
	}
	for i, word := range said {
		diagonal := row[0]
		row[0] = i + 1
		for j, other := range heard {
			replaced := diagonal
			if word != other {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(heard)]
}
