package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// The names of the built-in tools.
const (
	readFile  = "read_file"
	writeFile = "write_file"
	editFile  = "edit_file"
	glob      = "glob"
	grep      = "grep"
	bash      = "bash"
)

// BuiltIn lists the names of the built-in tools, which no other tool may have.
func BuiltIn() []string { return []string{readFile, writeFile, editFile, glob, grep, bash} }

// What a file tool takes and gives, in bytes unless it says otherwise.
const (
	maxRead  = 64 << 10 // of text in one result: what package agent shows a model of one
	maxWrite = 1 << 20  // of a file that is written or edited
	maxPath  = 4096

	fileTimeout = 30 * time.Second
	maxRunning  = 32 // calls at once on one folder
)

// Files makes the tools that read and write the files of one folder: read_file, write_file, edit_file, glob and grep.
// A call takes at most timeout, 0 stands for 30 s. The root stays the caller's, who closes it when no call runs.
//
// What keeps them inside of the folder is [os.Root]: a path that leads out of it, by .. or a link, is refused at the
// moment it is opened, so no change between a check and the use of a path matters. Two things it does not keep out: a
// file system that is mounted inside of the folder, and a hard link to a file outside of it.
//
// Edits of one Files come one after the other, so make one for a folder and share it: all its tools may be called from
// several goroutines. A call that is held by the operating system, as on a network drive that is gone, is left behind
// when its time is over; its goroutine ends when the system lets go. There are at most 32 of them, then calls wait.
func Files(root *os.Root, timeout time.Duration) []Tool {
	f := &folder{
		root:    root,
		timeout: cmp.Or(max(0, timeout), fileTimeout),
		running: make(chan struct{}, maxRunning),
		writing: make(chan struct{}, 1),
	}
	return []Tool{
		fileTool{f, readDefinition, f.read},
		fileTool{f, writeDefinition, f.write},
		fileTool{f, editDefinition, f.edit},
		fileTool{f, globDefinition, f.glob},
		fileTool{f, grepDefinition, f.grep},
	}
}

// folder is what the file tools work in.
type folder struct {
	root    *os.Root
	timeout time.Duration
	running chan struct{} // a place for each call that runs
	writing chan struct{} // a place for the one that writes
}

type fileTool struct {
	folder     *folder
	definition Definition
	run        func(context.Context, json.RawMessage) (Result, error)
}

func (t fileTool) Definition() Definition { return t.definition }

func (t fileTool) Run(ctx context.Context, input json.RawMessage) (Result, error) {
	return within(ctx, t.folder.running, t.folder.timeout, t.definition.Name, func(ctx context.Context) (Result, error) {
		return t.run(ctx, input)
	})
}

// local tidies a path as a model wrote it. Whether it leads out of the folder is for os.Root to say.
func local(p string) (string, error) {
	unfit := func(r rune) bool { return unicode.IsControl(r) }
	switch {
	case p == "":
		return "", missing("path")
	case len(p) > maxPath:
		return "", say(nil, "The path is longer than %d bytes.", maxPath)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unfit):
		return "", say(nil, "%s is no path: there is more than printable text in it.", named(p))
	}
	return filepath.Clean(filepath.FromSlash(p)), nil
}

// open opens a regular file to read. Anything else is refused without waiting for it: whoever opens a pipe without
// O_NONBLOCK waits until somebody writes to it. It is looked at before, since opening a device may do something, and
// after, since it may have changed.
func (f *folder) open(p string) (*os.File, error) {
	info, err := f.root.Stat(p)
	if err != nil {
		return nil, problem(p, err)
	}
	if err := regular(p, info); err != nil {
		return nil, err
	}
	file, err := f.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, problem(p, err)
	}
	if info, err = file.Stat(); err == nil {
		err = regular(p, info)
	} else {
		err = problem(p, err)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func regular(p string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return say(nil, "%s is a folder. See what is in it with glob.", named(p))
	case info.Mode().Type() == fs.ModeSymlink:
		return say(nil, "%s is a link. Name the file that it leads to.", named(p))
	default:
		return say(nil, "%s is not a file with text in it, but a pipe, a socket or a device.", named(p))
	}
}

// failure is an error in words for the model and the person, with what it came from.
type failure struct {
	words string
	cause error
}

func (f *failure) Error() string { return f.words }
func (f *failure) Unwrap() error { return f.cause }

func say(cause error, format string, args ...any) error {
	return &failure{fmt.Sprintf(format, args...), cause}
}

var (
	errBinary  = errors.New("not text")
	errTooLong = errors.New("too long")
)

// problem says in words what is wrong with a file, and names no more of its path than the model did.
func problem(p string, err error) error {
	var (
		said   *failure
		number syscall.Errno
	)
	switch {
	case errors.As(err, &said), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, errBinary):
		return say(err, "%s is binary: only text can be read and changed.", named(p))
	case errors.Is(err, errTooLong):
		return say(err, "%s would be, or is, longer than %d KiB: files up to that can be written and edited.", named(p), maxWrite>>10)
	case errors.Is(err, fs.ErrNotExist):
		return say(err, "There is no %s.", named(p))
	case errors.Is(err, fs.ErrPermission):
		return say(err, "%s may not be used: the permission is missing.", named(p))
	case errors.As(err, &number):
		return say(err, "%s cannot be used: %s.", named(p), number.Error())
	case errors.Is(err, fs.ErrClosed):
		return say(err, "The folder is closed.")
	default: // what is no error of the operating system's is os.Root's own, which has no name
		return outside(p)
	}
}

func outside(p string) error {
	return say(nil, "%s leads out of the folder that you may use. Paths begin in that folder, without a slash.", named(p))
}

// named is a path in an error.
func named(p string) string { return quoted(filepath.ToSlash(p), 200) }

// output is what observers of the file tools see.
type output struct {
	Path    string `json:"path,omitempty"`
	Content string `json:"content"`        // what was read or found, without the notes to the model, or what it is told of a change
	Diff    string `json:"diff,omitempty"` // of a change
}
