package protocol_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"vela/protocol"
	"vela/protocol/ganglia"
)

// The document for people is written by a person, save for what the table knows better: those blocks stand between
// markers, and -update writes them.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]string{
		"client events":              eventTable(eventsFrom(protocol.Client, 1), 1),
		"server events":              eventTable(eventsFrom(protocol.Server, 1), 1),
		"examples":                   exampleBlock(messages, protocol.Encode),
		"client events of version 2": eventTable(eventsFrom(protocol.Client, 2), 2),
		"server events of version 2": eventTable(eventsFrom(protocol.Server, 2), 2),
		"types of version 2":         typeBlock(),
		"examples of version 2":      exampleBlock(messages2, encode2),
		"error codes":                errorTable(),
		"close codes":                closeTable(),
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

func eventTable(events []protocol.Event, version int) string {
	var b strings.Builder
	b.WriteString("| type | payload | meaning |\n| --- | --- | --- |\n")
	for _, e := range events {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", e.Type, payloadShape(e, version), docOf(e, version))
	}
	return b.String()
}

func payloadShape(e protocol.Event, version int) string {
	if len(alternatives(e)) > 0 {
		return structName(e)
	}
	var parts []string
	for _, f := range fields(e, version) {
		if f.name == "" {
			parts = append(parts, "…"+f.typ.Name())
			continue
		}
		parts = append(parts, f.name+questionMark(f)+": "+fieldType(f))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// typeBlock shows what the payloads of version 2 name.
func typeBlock() string {
	var b strings.Builder
	b.WriteString("```ts\n")
	for _, t := range nestedStructs() {
		fmt.Fprintf(&b, "type %s = %s;\n", t.Name(), typeScriptObject(structFields(t)))
	}
	for _, e := range upTo(2) {
		list := alternatives(e)
		var names []string
		for _, v := range list {
			fmt.Fprintf(&b, "type %s = %s;\n", v.name, typeScriptObject(v.fields))
			names = append(names, v.name)
		}
		if len(list) > 0 {
			fmt.Fprintf(&b, "type %s = %s;\n", structName(e), strings.Join(names, " | "))
		}
	}
	fmt.Fprintf(&b, "type StatusAction = %s;\n", orWords(ganglia.Actions()))
	fmt.Fprintf(&b, "type CancelReason = %s;\n", orWords(protocol.CancelReasons()))
	fmt.Fprintf(&b, "type EndReason = %s;\n```\n", orWords(protocol.EndReasons()))
	return b.String()
}

func orWords[S ~string](words []S) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, quote(string(w)))
	}
	return strings.Join(quoted, " | ")
}

func exampleBlock[M any](examples []M, encode func(M) []byte) string {
	var b strings.Builder
	b.WriteString("```json\n")
	for _, m := range examples {
		fmt.Fprintf(&b, "%s\n", encode(m))
	}
	b.WriteString("```\n")
	return b.String()
}

func encode2(e protocol.Envelope) []byte { return protocol.AppendEnvelope(nil, e) }

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

// Every message that the document shows is one, written exactly as it is written on the wire, and stands in the part on
// its version.
func TestReadmeMessages(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	version, shown := 1, map[int]int{}
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "# Version 2":
			version = 2
		case strings.HasPrefix(line, `{"type":`):
			shown[version]++
			if again, err := rewritten([]byte(line), version); err != nil || string(again) != line {
				t.Errorf("line %d is written %s: %v", i+1, again, err)
			}
		}
	}
	if shown[1] <= len(messages) || shown[2] <= len(messages2) {
		t.Errorf("only %v messages found", shown)
	}
}

// rewritten reads a message of whichever side and writes it again.
func rewritten(frame []byte, version int) (again []byte, err error) {
	for _, from := range []protocol.Side{protocol.Client, protocol.Server} {
		var m protocol.Message
		var e protocol.Envelope
		if version == 1 {
			m, err = protocol.Decode(frame, from)
		} else {
			e, err = protocol.DecodeEnvelope(frame, from)
		}
		switch {
		case err == nil && version == 1:
			return protocol.Encode(m), nil
		case err == nil:
			return encode2(e), nil
		}
	}
	return nil, err
}
