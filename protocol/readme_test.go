package protocol_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"vela/protocol"
)

// The document for people is written by a person, save for what the table knows better: those blocks stand between
// markers, and -update writes them.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]string{
		"client events": eventTable(eventsFrom(protocol.Client, 1)),
		"server events": eventTable(eventsFrom(protocol.Server, 1)),
		"examples":      exampleBlock(),
		"error codes":   errorTable(),
		"close codes":   closeTable(),
	} {
		text = replaceBlock(t, text, name, block)
	}
	golden(t, "README.md", text)
}

func replaceBlock(t *testing.T, text []byte, name, block string) []byte {
	t.Helper()
	begin := []byte("<!-- " + name + ": go test ./protocol -update writes this -->\n")
	end := []byte("<!-- end of " + name + " -->")
	before, rest, ok := bytes.Cut(text, begin)
	old, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 || bytes.Contains(old, []byte("<!--")) {
		t.Fatalf("README.md has no block %q", name)
	}
	return bytes.Join([][]byte{before, begin, []byte("\n" + block + "\n"), end, after}, nil)
}

func eventTable(events []protocol.Event) string {
	var b strings.Builder
	b.WriteString("| type | payload | meaning |\n| --- | --- | --- |\n")
	for _, e := range events {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.Type, payloadShape(e), e.Doc)
	}
	return b.String()
}

func payloadShape(e protocol.Event) string {
	var parts []string
	for _, f := range fields(e, 1) {
		mark := ""
		if f.optional {
			mark = "?"
		}
		parts = append(parts, f.name+mark+": "+typeScriptType(f.typ))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func exampleBlock() string {
	var b strings.Builder
	b.WriteString("```json\n")
	for _, m := range messages {
		fmt.Fprintf(&b, "%s\n", protocol.Encode(m))
	}
	b.WriteString("```\n")
	return b.String()
}

func errorTable() string {
	var b strings.Builder
	b.WriteString("| code | retryable | meaning |\n| --- | --- | --- |\n")
	for _, c := range protocol.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Code, yesNo(c.Retryable), c.Meaning)
	}
	return b.String()
}

func closeTable() string {
	var b strings.Builder
	b.WriteString("| status | name | come back by itself | meaning |\n| --- | --- | --- | --- |\n")
	for _, c := range protocol.Closes() {
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", c.Code, c.Name, yesNo(c.Reconnect), c.Meaning)
	}
	return b.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Every message that the document shows is one, written exactly as the gateway writes it.
func TestReadmeMessages(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, `{"type":`) {
			continue
		}
		shown++
		m, err := protocol.Decode([]byte(line), protocol.Client)
		if err != nil {
			m, err = protocol.Decode([]byte(line), protocol.Server)
		}
		if err != nil {
			t.Errorf("line %d: %v", i+1, err)
		} else if again := protocol.Encode(m); string(again) != line {
			t.Errorf("line %d is written %s", i+1, again)
		}
	}
	if shown <= len(messages) {
		t.Errorf("only %d messages found", shown)
	}
}
