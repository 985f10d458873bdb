// Package tap listens in on programs that know nothing of signals: on Claude Code through hooks, which it calls, and on
// any other program through what it prints.
//
// Start at [Hooks], which puts the hooks into a project and takes them out; settings.go is how a file that is the user's
// is changed without harm, and [Post] what a hook does that is a command. [Program] runs a program and reads along;
// [Lines] makes signals of what it prints.
package tap

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// settingsFile is where Claude Code reads what is one person's own, and no part of the project.
const settingsFile = "settings.local.json"

// refusal is an error that only a person mends, in words for whoever wanted the hooks.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) Refused() bool   { return true }

// ErrNoProject comes from a project in which nobody uses Claude Code.
const ErrNoProject refusal = "There is no folder .claude where the gateway runs, nor above it. Use Claude Code there once, or name its project with --claude-project."

// left ends what is said of a file that was not changed.
const left = " It was left as it is."

// Hooks has Claude Code tell of what it does. Each of its methods may be called from any goroutine. Make it with [New].
type Hooks struct {
	cfg   Config
	token string

	mu     sync.Mutex
	file   string      // that the hooks are in; empty: in none
	before []byte      // what it held without them
	fresh  bool        // there was none
	mode   fs.FileMode // that it had
	after  []byte      // what it holds with them
}

// Config is where hooks go, and what they call.
type Config struct {
	// Folder finds the folder .claude of the project; false where there is none.
	Folder func() (string, bool)
	// URL is where hooks are posted to. An error says why there can be no hooks, in words for whoever wanted them.
	URL func() (string, error)
	// Program is the path of the program vela, which Claude Code runs for the one event that it cannot post.
	Program string
}

// New returns hooks that are not in a project yet. Their token is a new one, for as long as the process lives.
func New(cfg Config) *Hooks { return &Hooks{cfg: cfg, token: rand.Text()} }

// Admits says whether a request for a hook has our token. It takes as long for a wrong one as for the right one.
func (h *Hooks) Admits(r interface{ Get(string) string }) bool {
	return subtle.ConstantTimeCompare([]byte(r.Get(tokenHeader)), []byte(h.token)) == 1
}

// Install puts the hooks into the project's settings.local.json. Those that are there already, of this gateway or of one
// that was killed, are replaced; all else in the file stays. A file that is not JSON is an error, and is left alone. What a
// person has to mend is an error with a method Refused, and names no path.
func (h *Hooks) Install(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	folder, ok := h.cfg.Folder()
	if !ok {
		return ErrNoProject
	}
	url, err := h.cfg.URL()
	if err != nil {
		return err
	}
	file, err := filepath.EvalSymlinks(filepath.Join(folder, settingsFile)) // a link stays one
	if err != nil {
		file = filepath.Join(folder, settingsFile)
	}
	if h.file != "" && h.file != file {
		if err := h.remove(); err != nil {
			return err
		}
	}
	text, mode, err := read(file)
	fresh := errors.Is(err, fs.ErrNotExist)
	switch {
	case fresh:
		text, mode = []byte("{}\n"), 0o600
	case err != nil:
		return fmt.Errorf("tap: read Claude Code's %s: %w", settingsFile, cause(err))
	case h.file == file && bytes.Equal(text, h.after):
		return nil
	}
	s, err := parseSettings(text)
	if err == nil {
		err = s.allows(url)
	}
	if err != nil {
		return err
	}
	before := text
	if len(s.ours()) > 0 {
		s.strip()
		if before, err = s.text(); err != nil {
			return err
		}
		fresh = fresh || h.file == file && h.fresh
	}
	if h.file == file {
		mode = h.mode
	}
	if err := s.add(url, h.token, command(h.cfg.Program, file)); err != nil {
		return err
	}
	after, err := s.text()
	if err != nil {
		return err
	}
	if err := replace(file, after, mode&0o600); err != nil { // it holds a token
		return fmt.Errorf("tap: write Claude Code's %s: %w", settingsFile, cause(err))
	}
	h.file, h.before, h.fresh, h.mode, h.after = file, bytes.Clone(before), fresh, mode, after
	return nil
}

// Remove takes our hooks out again, as far as they are there and are still this gateway's. A file that has not changed
// since is, to the byte, as it was before.
func (h *Hooks) Remove(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == "" {
		return nil
	}
	return h.remove()
}

// remove does that for the file that the hooks are in. mu is held.
func (h *Hooks) remove() error {
	text, _, err := read(h.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.file = ""
		return nil
	case err != nil:
		return fmt.Errorf("tap: read Claude Code's %s: %w", settingsFile, cause(err))
	}
	without := h.before
	if !bytes.Equal(text, h.after) {
		s, err := parseSettings(text)
		if err != nil {
			return err
		}
		if !h.own(s) {
			h.file = ""
			return nil
		}
		s.strip()
		if without, err = s.text(); err != nil {
			return err
		}
	}
	if h.fresh && bytes.Equal(bytes.TrimSpace(without), []byte("{}")) {
		err = os.Remove(h.file)
	} else {
		err = replace(h.file, without, h.mode)
	}
	if err != nil {
		return fmt.Errorf("tap: write Claude Code's %s: %w", settingsFile, cause(err))
	}
	h.file = ""
	return nil
}

// own says whether the hooks in a file call this gateway, and not one that came after it.
func (h *Hooks) own(s *settings) bool {
	for _, e := range s.ours() {
		if e.Headers[tokenHeader] == h.token {
			return true
		}
	}
	return false
}

// command is the line for a shell that runs our program for the hooks of a file. It holds no token: anybody on the
// machine may read the command lines of others.
func command(program, file string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return quote(program) + " hook " + quote(file)
}

// read reads a regular file of bounded size.
func read(file string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("it is no file")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	return text, info.Mode().Perm(), err
}

// replace puts a text in the place of a file, as a whole: whoever reads it sees the old one or the new one.
func replace(file string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".settings-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says it all
	}
	return err
}

// cause is an error of the file system's without the path, which no answer and no log has.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}
