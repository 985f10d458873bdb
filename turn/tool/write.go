package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var writeDefinition = Definition{
	Name: writeFile,
	Description: "Write a file of the folder: make it, with the folders that it is in, or replace all of its text. At most 1 MiB. " +
		"To change a part of a file, use edit_file. Paths are relative to the folder.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {
			"path": {"type": "string", "description": "The file, relative to the folder, such as notes/todo.md"},
			"content": {"type": "string", "description": "The whole text of the file"}
		},
		"required": ["path", "content"],
		"additionalProperties": false
	}`),
}

var editDefinition = Definition{
	Name: editFile,
	Description: "Replace a piece of text in a file of the folder. The piece must be in the file exactly once, with the same white space: " +
		"give enough of the lines around it. Paths are relative to the folder.",
	Parameters: json.RawMessage(`{
		"type": "object",
		"properties": {
			"path": {"type": "string", "description": "The file, relative to the folder, such as notes/todo.md"},
			"old_string": {"type": "string", "description": "The text to replace, exactly as it is in the file"},
			"new_string": {"type": "string", "description": "The text to put in its place"},
			"replace_all": {"type": "boolean", "description": "Replace it wherever it is in the file. Default: false"}
		},
		"required": ["path", "old_string", "new_string"],
		"additionalProperties": false
	}`),
}

type writeInput struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func (f *folder) write(ctx context.Context, input json.RawMessage) (Result, error) {
	var in writeInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	p, err := local(in.Path)
	switch {
	case err != nil:
		return Result{}, err
	case in.Content == nil:
		return Result{}, missing("content")
	case len(*in.Content) > maxWrite:
		return Result{}, problem(p, errTooLong)
	}
	release, err := f.alone(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	before, err := f.whole(ctx, p)
	switch {
	case errors.Is(err, errBinary), errors.Is(err, errTooLong):
		return f.replace(ctx, p, nil, *in.Content) // there is nothing to compare with
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Result{}, err
	}
	return f.replace(ctx, p, &before, *in.Content)
}

type editInput struct {
	Path       string  `json:"path"`
	OldString  string  `json:"old_string"`
	NewString  *string `json:"new_string"`
	ReplaceAll bool    `json:"replace_all"`
}

func (f *folder) edit(ctx context.Context, input json.RawMessage) (Result, error) {
	var in editInput
	if err := decode(input, &in); err != nil {
		return Result{}, err
	}
	p, err := local(in.Path)
	switch {
	case err != nil:
		return Result{}, err
	case in.OldString == "":
		return Result{}, errors.New("The input needs an \"old_string\" that is not empty. To write a whole file, use write_file.")
	case in.NewString == nil:
		return Result{}, missing("new_string")
	case in.OldString == *in.NewString:
		return Result{}, errors.New("old_string and new_string are the same: there is nothing to do.")
	}
	release, err := f.alone(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	before, err := f.whole(ctx, p)
	if err != nil {
		return Result{}, err
	}
	after, err := in.apply(before)
	if err != nil {
		return Result{}, err
	}
	return f.replace(ctx, p, &before, after)
}

func (in editInput) apply(text string) (string, error) {
	n := strings.Count(text, in.OldString)
	switch {
	case n == 0:
		return "", say(nil, "old_string is not in %s. Read the file and copy the text exactly, with its white space.", named(in.Path))
	case n > 1 && !in.ReplaceAll:
		return "", say(nil, "old_string is in %s %d times. Give more of the lines around it, or set replace_all.", named(in.Path), n)
	case len(text)+n*(len(*in.NewString)-len(in.OldString)) > maxWrite:
		return "", problem(in.Path, errTooLong)
	}
	return strings.ReplaceAll(text, in.OldString, *in.NewString), nil
}

// alone waits until no other call writes: between reading a file and replacing it nothing else may change it.
func (f *folder) alone(ctx context.Context) (release func(), err error) {
	select {
	case f.writing <- struct{}{}:
		return func() { <-f.writing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// whole reads a text that is short enough to be written.
func (f *folder) whole(ctx context.Context, p string) (string, error) {
	file, err := f.open(p)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	b, err := io.ReadAll(io.LimitReader(file, maxWrite+1))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
	case bytes.IndexByte(b, 0) >= 0:
		err = errBinary
	case len(b) > maxWrite:
		err = errTooLong
	}
	if err != nil {
		return "", problem(p, err)
	}
	return string(b), nil
}

// replace gives a file new text and tells what changed; before is nil where that cannot be told.
func (f *folder) replace(ctx context.Context, p string, before *string, after string) (Result, error) {
	if err := f.put(ctx, p, after); err != nil {
		return Result{}, problem(p, err)
	}
	told := fmt.Sprintf("%s was written: it has %s.", named(p), plural(lines(after), "line"))
	out := output{Path: filepath.ToSlash(p), Content: told}
	if before != nil {
		out.Diff = diff(out.Path, *before, after)
	}
	return Result{Content: told, Output: encode(out)}, nil
}

// put replaces a file as a whole: whoever reads it sees the old text or the new one, and a call that was stopped leaves
// the old one. It keeps the mode of a file that was there; other names of the same file, hard links, keep the old text.
func (f *folder) put(ctx context.Context, p, text string) error {
	dir, name, err := f.parent(p)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	mode := fs.FileMode(0o666) // less what the process's mask takes away
	old, err := dir.Lstat(name)
	switch {
	case err == nil:
		if err := regular(p, old); err != nil {
			return err
		}
		mode = 0o600 // until it has the old one's
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temp := ".vela-" + rand.Text()
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if old != nil {
		err = errors.Join(err, file.Chmod(old.Mode().Perm()))
	}
	err = errors.Join(err, file.Close(), ctx.Err())
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp)
	}
	return err
}

// parent opens the folder that a file is in, and makes it if need be.
func (f *folder) parent(p string) (dir *os.Root, name string, err error) {
	within := filepath.Dir(p)
	if err := f.root.MkdirAll(within, 0o777); err != nil {
		return nil, "", err
	}
	dir, err = f.root.OpenRoot(within)
	return dir, filepath.Base(p), err
}
