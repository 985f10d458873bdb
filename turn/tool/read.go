package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

var readDefinition = Definition{
	Name: readFile,
	Description: "Read a text file of the folder. Gives at most 64 KiB of whole lines; of a longer file it says how to read on. " +
		"Paths are relative to the folder.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {
			"path": {"type": "string", "description": "The file, relative to the folder, such as notes/todo.md"},
			"offset": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1. Default: 1"},
			"limit": {"type": "integer", "minimum": 1, "description": "How many lines to read. Default: as many as fit"}
		},
		"required": ["path"],
		"additionalProperties": false
	}`),
	ReadOnly: true,
}

type readInput struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}

func (f *folder) read(ctx context.Context, input json.RawMessage) (Result, error) {
	var in readInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	p, err := local(in.Path)
	if err != nil {
		return Result{}, err
	}
	part := excerpt{first: 1}
	if in.Offset != nil {
		part.first = *in.Offset
	}
	if in.Limit != nil {
		part.limit = *in.Limit
	}
	if part.first < 1 || in.Limit != nil && part.limit < 1 {
		return Result{}, errors.New("Lines are counted from 1: offset and limit must be at least 1.")
	}
	file, err := f.open(p)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = file.Close() }()
	if err := part.read(ctx, file); err != nil {
		return Result{}, part.problem(in.Path, err)
	}
	text := strings.ToValidUTF8(string(part.text), "\uFFFD")
	return Result{
		Content: text + part.note(text),
		Output:  encode(output{Path: in.Path, Content: text}),
	}, nil
}

// excerpt is some lines of a file. It holds no more of the file than these and a buffer.
type excerpt struct {
	first, limit int // lines; a limit of 0 is none

	text  []byte
	start int  // where in text the current line begins
	line  int  // the current line; at the end, the one to read on with
	more  bool // there is more to read
	cut   bool // the only line of text lacks its end
}

var errBeyond = errors.New("beyond the end")

// sniffed is how much of a file decides whether it is text, in bytes: there is no NUL in a text. Git does the same.
const sniffed = 8000

func isBinary(r *bufio.Reader) bool {
	head, _ := r.Peek(sniffed) // its error comes again with the next read
	return bytes.IndexByte(head, 0) >= 0
}

func (e *excerpt) read(ctx context.Context, from io.Reader) error {
	r := bufio.NewReaderSize(from, 64<<10)
	if isBinary(r) {
		return errBinary
	}
	for e.line = 1; ctx.Err() == nil; {
		piece, err := r.ReadSlice('\n')
		if len(piece) > 0 {
			if full, err := e.take(piece); full || err != nil {
				return err
			}
		}
		switch {
		case err == nil:
			e.line++
			e.start = len(e.text)
		case errors.Is(err, io.EOF):
			return e.end(len(piece) > 0)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return ctx.Err()
}

// take adds a piece of the current line, if that is wanted, and says whether there is enough.
func (e *excerpt) take(piece []byte) (full bool, err error) {
	switch {
	case e.line < e.first:
		return false, nil
	case e.limit > 0 && e.line-e.first >= e.limit:
		e.more = true
		return true, nil
	case bytes.IndexByte(piece, 0) >= 0:
		return true, errBinary
	case len(e.text)+len(piece) <= maxRead:
		e.text = append(e.text, piece...)
		return false, nil
	case e.start > 0:
		e.text = e.text[:e.start]
		e.more = true
		return true, nil
	default:
		whole := string(append(e.text, piece...))
		e.text = []byte(prefix(whole, maxRead))
		e.line++
		e.more, e.cut = true, true
		return true, nil
	}
}

// end is an error if the file ends before what was asked for.
func (e *excerpt) end(open bool) error {
	last := e.line - 1
	if open {
		last = e.line
	}
	if e.first > max(last, 1) {
		e.line = last
		return errBeyond
	}
	return nil
}

// note tells the model what it does not have, in brackets on a line of its own.
func (e *excerpt) note(text string) string {
	var notes []string
	switch {
	case e.cut:
		notes = append(notes, fmt.Sprintf("Line %d is longer than %d KiB: its end cannot be read. Read on with offset %d.", e.first, maxRead>>10, e.line))
	case e.more:
		notes = append(notes, fmt.Sprintf("These are lines %d to %d. Read on with offset %d.", e.first, e.line-1, e.line))
	case text == "":
		notes = append(notes, "The file is empty.")
	}
	if !utf8.Valid(e.text) {
		notes = append(notes, "Bytes that are not UTF-8 are shown as \uFFFD.")
	}
	if len(notes) == 0 {
		return ""
	}
	gap := ""
	if text != "" && !strings.HasSuffix(text, "\n") {
		gap = "\n"
	}
	return gap + "[" + strings.Join(notes, " ") + "]"
}

func (e *excerpt) problem(p string, err error) error {
	if errors.Is(err, errBeyond) {
		return say(err, "%s has only %s.", named(p), plural(e.line, "line"))
	}
	return problem(p, err)
}
