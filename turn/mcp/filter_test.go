package mcp

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// filtered writes to a filter, and gives what comes through and the error that ended it.
func filtered(t *testing.T, write func(io.Writer) error) (lines []string, err error) {
	t.Helper()
	out, in := io.Pipe()
	f := &filter{to: in, log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() {
		err := write(&lineWriter{max: maxMessage, take: f.line})
		_ = in.Close() // has no effect after an error of the filter
		done <- err
	}()
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 2*maxMessage)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if wrote := <-done; wrote != scanner.Err() {
		t.Errorf("the writer got %v, the reader %v", wrote, scanner.Err())
	}
	return lines, scanner.Err()
}

func writeAll(pieces ...string) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, p := range pieces {
			if _, err := io.WriteString(w, p); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestFilter(t *testing.T) {
	long := strings.Repeat("x", maxMessage-2)
	for name, c := range map[string]struct {
		pieces []string
		want   string // joined by |
		err    error
	}{
		"messages":          {[]string{"{\"a\":1}\n[{}]\r\n"}, `{"a":1}|[{}]`, nil},
		"in pieces":         {[]string{"{\"a", "\":1", "}", "\n"}, `{"a":1}`, nil},
		"garbage":           {[]string{"hello\n\n{\"a\":\n{}{}\n\"x\"\n17\n{}\n"}, `{}`, nil},
		"no end":            {[]string{"{}\n{}"}, `{}`, nil},
		"as long as it may": {[]string{"[\"" + long[:len(long)-2] + "\"]\n{}\n"}, `["` + long[:len(long)-2] + `"]|{}`, nil},
		"too long":          {[]string{"{}\n[\"" + long + "\"]\n{}\n"}, `{}`, errLong},
		"too long, no end":  {[]string{long, long, long}, ``, errLong},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := filtered(t, writeAll(c.pieces...))
			if joined := strings.Join(got, "|"); joined != c.want || err != c.err {
				t.Errorf("%.100q, %v", joined, err)
			}
		})
	}
}

// What a program still writes when nobody reads any more goes nowhere: an error would break its pipe, and kill it before it has ended by itself.
func TestFilterWithoutAReader(t *testing.T) {
	out, in := io.Pipe()
	_ = out.Close()
	f := &filter{to: in, log: slog.New(slog.DiscardHandler)}
	if err := writeAll("{}\n", "{\"a\":1}\n")(&lineWriter{max: maxMessage, take: f.line}); err != nil || f.err != nil {
		t.Errorf("%v, %v", err, f.err)
	}
}

func TestFilterBoundsTheRate(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		err   error
	}{"as fast as it may": {time.Second, nil}, "faster": {time.Second - 1, errFlood}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := filtered(t, func(w io.Writer) error {
					for i := range 3 * maxRate {
						if i == maxRate {
							time.Sleep(c.pause)
						} else if i > 0 && i%maxRate == 0 {
							time.Sleep(time.Second)
						}
						if _, err := io.WriteString(w, "{}\n"); err != nil {
							return err
						}
					}
					return nil
				})
				if err != c.err {
					t.Error(err)
				}
			})
		})
	}
}

// A line of stderr that is too long gives its beginning, once.
func TestLineWriter(t *testing.T) {
	for _, size := range []int{1, 2, 3, 100} {
		var got []string
		w := &lineWriter{max: 4, take: func(line []byte, long bool) error {
			if long {
				line = append(line, '+')
			}
			got = append(got, string(line))
			return nil
		}}
		for rest := "1234\n12345678\n\n1\nopen"; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := w.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		if joined := strings.Join(got, "|"); joined != "1234|1234+||1" {
			t.Errorf("in writes of %d: %s", size, joined)
		}
	}
}

func TestFit(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"list", "a.b", "a_b", "a b", "a/b", "é", strings.Repeat("x", 59), strings.Repeat("x", 60), strings.Repeat("x", 61), "\x00"} {
		got := fit("srv1", name)
		if len(got) > maxName || !strings.HasPrefix(got, "srv1_") || seen[got] != "" || got != fit("srv1", name) {
			t.Errorf("%q is called %q, as %q is", name, got, seen[got])
		}
		seen[got] = name
	}
	for name, want := range map[string]string{"list": "srv1_list", strings.Repeat("x", 59): "srv1_" + strings.Repeat("x", 59)} {
		if got := fit("srv1", name); got != want {
			t.Errorf("%q is called %q", name, got)
		}
	}
}

func TestSchema(t *testing.T) {
	for _, c := range []struct {
		input any
		want  string
	}{
		{nil, `{"properties":{},"type":"object"}`},
		{map[string]any{"type": "object", "properties": nil}, `{"properties":{},"type":"object"}`},
		{map[string]any{"required": []any{"a"}}, `{"properties":{},"required":["a"],"type":"object"}`},
		{map[string]any{"type": "array"}, ""},
		{[]any{}, ""},
		{map[string]any{"description": strings.Repeat("x", maxSchema)}, ""},
	} {
		got, err := schema(c.input)
		if string(got) != c.want && c.want != "" || (err == nil) != (c.want != "") {
			t.Errorf("%.50v: %s, %v", c.input, got, err)
		}
	}
}

func TestRedact(t *testing.T) {
	remote := Config{URL: "http://host/path?token=secret1", Header: http.Header{"Authorization": {"Bearer secret2"}, "Empty": {""}, "X": {"1"}}}
	command := Config{Env: []string{"TOKEN=secret=3", "LEVEL=1", "EMPTY="}}
	for text, want := range map[string]string{
		"EOF": "EOF",
		`Get "http://host/path?token=secret1": Bearer secret2`: `Get "http://host/path?…": …`,
		"there is no secret2, 1 time":                          "there is no …, 1 time",
	} {
		if got := remote.redact(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := command.redact("TOKEN=secret=3 at level 1"); got != "TOKEN=… at level 1" {
		t.Error(got)
	}
}
