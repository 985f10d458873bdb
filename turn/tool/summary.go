package tool

import (
	"encoding/json"
	"fmt"
)

// maxSummary is how many runes a question may have: one line of a phone in its hand's width, or two.
const maxSummary = 200

// summary tells a person in one line what a call would do. What the model wrote stands in it as it is, so everything
// that does not show is made visible, and what is cut off is counted: an end that nobody saw was not agreed to unseen.
func summary(c Call) string {
	var in asked
	if json.Unmarshal(c.Input, &in) != nil {
		return other(c)
	}
	switch c.Name {
	case readFile:
		return short("Read "+in.Path, maxSummary)
	case glob:
		return short("List "+in.Pattern+in.below(), maxSummary)
	case grep:
		return short("Search for "+in.Pattern+in.below(), maxSummary)
	case writeFile:
		return short(fmt.Sprintf("Write %s to %s", plural(lines(in.Content), "line"), in.Path), maxSummary)
	case editFile:
		return short("Edit "+in.Path+in.change(), maxSummary)
	case bash:
		return short("Run: "+in.Command, maxSummary)
	}
	return other(c)
}

// asked is what of the built-in tools' inputs a person is told.
type asked struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
	Pattern    string `json:"pattern"`
	Command    string `json:"command"`
}

func (in asked) below() string {
	if in.Path == "" {
		return ""
	}
	return " in " + in.Path
}

func (in asked) change() string {
	where := ""
	if in.ReplaceAll {
		where = " wherever they are"
	}
	return fmt.Sprintf(": %s for %d%s", plural(lines(in.NewString), "line"), lines(in.OldString), where)
}

func other(c Call) string {
	return short(fmt.Sprintf("Call %s with %s", c.Name, c.Input), maxSummary)
}
