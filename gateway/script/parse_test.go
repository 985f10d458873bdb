package script_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vela/gateway/script"
)

func TestParseTakes(t *testing.T) {
	for name, text := range map[string]string{
		"a message":             `< {"type":"session.ready","payload":{"sessionId":"<uuid>"}}`,
		"placeholders":          `< {"a":"<any>","b":["<text>","<id:number>"],"c":"<!id>","d":"<~two words>","e":"<","f":"<b","g":"a>"}`,
		"any value":             `< "<any>"`,
		"bytes":                 `<< not json`,
		"skipping":              `< ... until {"a":1}`,
		"any text":              "> not json\n>  two blanks\n> > <",
		"ways to send":          ">empty\n>binary 00ff10\n>binary 00 ff\n>repeat 5 x\n>size 1048577\n>frame c1 80\n>frame 81'a b'00\n>wav a.wav\n>wav a.wav fast\n>binary a.wav fast",
		"time":                  "within 500ms\nsilent 1s\nwait 1m",
		"ends":                  "closed\nclose\ndrop\nclosed 4999",
		"requests":              "http GET /healthz 200\nhttp POST /x?y=1 404 not found here",
		"connections":           "connect as b turns=agent origin=http://h protocol=a,b\nconnect as c\nb> x\nb< 1\nc: closed 1000\nc:drop\nb>empty",
		"connect again":         "connect\ndrop\nconnect\n> x",
		"refusals":              "connect refused=403\n> x",
		"comments and blanks":   "# one\n\n  # two\n\t> x\n   \n",
		"lines that end in CR":  "> x\r\nclosed 1000\r\n",
		"a name and JSON in it": "connect as b\nb> {\"b>\":1}",
	} {
		if _, err := script.Parse(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseSaysWhatToWrite(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", `s:1: the script has no step: write at least one, such as < {"type":"session.ready","payload":"<any>"}`},
		{"hello", `s:1: "hello" is no step: write > or < and a message, or one of connect, resume, pass, within, silent, wait, closed, close, drop, http`},
		{"# c\n\n>", "s:3: > sends nothing: write the text after it, or >empty for an empty message"},
		{"> ", "s:1: > sends nothing: write the text after it, or >empty for an empty message"},
		{">x", "s:1: >x is no way to send: write > and a blank before a text, or one of >empty, >binary, >repeat, >size, >frame, >wav"},
		{">empty x", `s:1: nothing follows >empty: leave out "x"`},
		{">binary 0", `s:1: "0" is not hexadecimal: write >binary 00ff10, or >binary hello.wav`},
		{">repeat x", `s:1: a number up to 100000 and a text must follow >repeat: write >repeat 5 {"type":"session.start","payload":{}}`},
		{">repeat 0 x", `s:1: a number up to 100000 and a text must follow >repeat: write >repeat 5 {"type":"session.start","payload":{}}`},
		{">size 3", `s:1: "3" is no size between 50 and 67108864 bytes: write >size 1048577`},
		{">frame", "s:1: no bytes follow >frame: write them like c1 80, and texts in single quotes"},
		{">frame c", `s:1: "c" is not hexadecimal: write bytes like c1 80, and texts in single quotes`},
		{">frame 81 'x", "s:1: a text has no end: close it with another '"},
		{">wav", "s:1: a file must follow >wav: write >wav hello.wav, or >wav hello.wav fast"},
		{">wav a.wav slow", "s:1: a file must follow >wav: write >wav hello.wav, or >wav hello.wav fast"},
		{"<", "s:1: < expects nothing: write the message after it as JSON"},
		{"< {", "s:1: the expected message is not JSON (it ends too early): write one JSON value, or << and the text to compare bytes"},
		{"< 1 2", "s:1: the expected message is not JSON (more follows the value): write one JSON value, or << and the text to compare bytes"},
		{"< x", "s:1: the expected message is not JSON (invalid character 'x' looking for beginning of value): write one JSON value, or << and the text to compare bytes"},
		{"<<x", "s:1: << expects nothing: write << and a blank before the text"},
		{"< ...", "s:1: what ends the skipping? Write < ... until and a message as JSON"},
		{"< ... until", "s:1: what ends the skipping? Write < ... until and a message as JSON"},
		{`< {"a":["<nothing>"]}`, "s:1: <nothing> is no placeholder: write <any>, <text>, <number>, <uuid>, <none>, <id:uuid>, <!id> or <~words>; to expect this very text, compare bytes with <<"},
		{"within 5", `s:1: "5" is no length of time up to 10m0s: write it like 500ms or 2s`},
		{"wait -1s", `s:1: "-1s" is no length of time up to 10m0s: write it like 500ms or 2s`},
		{"wait 11m", `s:1: "11m" is no length of time up to 10m0s: write it like 500ms or 2s`},
		{"silent", "s:1: one length of time must follow: write it like 500ms or 2s"},
		{"closed 12", `s:1: "12" is no close code: write closed 1009, or closed alone for any code`},
		{"closed 1009 too big", `s:1: "1009 too big" is no close code: write closed 1009, or closed alone for any code`},
		{"drop it", `s:1: nothing follows drop: leave out "it"`},
		{"http /healthz", "s:1: method, path and status must follow http: write it like http GET /healthz 200, with words that the answer contains after it if you like"},
		{"http GET /healthz ok", `s:1: "ok" is no HTTP status: write it like http GET /healthz 200, with words that the answer contains after it if you like`},
		{"http get /healthz 200", `s:1: "get" is no HTTP method: write it like http GET /healthz 200, with words that the answer contains after it if you like`},
		{"connect turn=agent", `s:1: "turn=agent" is no option of connect: write connect, and of these what is needed: as b, turns=agent, origin=https://example.org, protocol=vela.v1, refused=403`},
		{"connect as", `s:1: "as" is no option of connect: write connect, and of these what is needed: as b, turns=agent, origin=https://example.org, protocol=vela.v1, refused=403`},
		{"connect as 1", `s:1: "1" is no name of a connection: use letters, digits, - and _`},
		{"connect refused=no", `s:1: "no" is no HTTP status: write refused=403, say`},
		{"connect as b\n> x", "s:2: which connection is meant? All of them have names: write, say, b> or b: before the step"},
		{"> x\nb> x", "s:2: there is no connection b here: write connect as b before this line"},
		{"> x\nconnect", "s:2: there is a connection without a name already: write connect before the first step, or give it a name with as"},
		{"connect as b\nb: within 1s", "s:2: within belongs to no connection: write it without b:"},
		{"connect as b\nb:", "s:2: nothing follows b: write b> …, b< … or b: closed 1000"},
		{"hello\n> x\nwait", "s:1: \"hello\" is no step: write > or < and a message, or one of connect, resume, pass, within, silent, wait, closed, close, drop, http\ns:3: one length of time must follow: write it like 500ms or 2s"},
	} {
		s, err := script.Parse("s", c.text)
		if s != nil || err == nil || err.Error() != c.says {
			t.Errorf("%q:\n%v\nwant\n%s", c.text, err, c.says)
		}
		var wrong *script.SyntaxError
		if !errors.As(err, &wrong) || wrong.Name != "s" {
			t.Errorf("%q: %T is no *SyntaxError", c.text, err)
		}
	}
}

func TestParseKeepsTheFirstComments(t *testing.T) {
	s, err := script.Parse("s", "\n# What it shows.\n#   In two lines.\n\n# Not this.\n> x\n# Nor this.")
	if err != nil || s.About != "What it shows.\nIn two lines." || s.Name != "s" {
		t.Errorf("%q %q and the error %v", s.Name, s.About, err)
	}
}

// The scripts that the gateway is held to say what they show, and are right.
func TestParseTheRepositorysScripts(t *testing.T) {
	files := scripts(t)
	if len(files) < 50 {
		t.Errorf("only %d scripts", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := script.Parse(file, string(text))
		if err != nil {
			t.Error(err)
		} else if !strings.HasSuffix(s.About, ".") && !strings.HasSuffix(s.About, ").") {
			t.Errorf("%s does not begin with what it shows", file)
		}
	}
}

func scripts(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.vela", "*/*.vela"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "e2e", "scripts", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// Whatever a script says, it is read without a panic, and what is wrong is said with its place.
func FuzzParse(f *testing.F) {
	for _, file := range scripts(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(">frame 81 'x' c1\n>binary 00\n>size 99\n>repeat 2 x\nconnect as b refused=400\nb: closed 1000\nhttp GET / 200\n< [\"<~a>\",\"<!a>\",\"<a:any>\"]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Parse("s", text)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v and the error %v", s, err)
		}
		var wrong *script.SyntaxError
		if err != nil && (!errors.As(err, &wrong) || wrong.Line < 1 || wrong.Line > strings.Count(text, "\n")+1) {
			t.Errorf("no place in %v", err)
		}
	})
}
