package dispatch

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// calibrate is where suites lie, below the root.
const calibrate = ".asterisk/calibrate"

// plain are session IDs that are a folder's name as they are, UUIDs among them.
var plain = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// SuiteID is the name of the folder that holds the cases of a session: the session's ID, or a digest of it where that
// would be no safe name. The same ID always has the same name, and no two have one.
func SuiteID(sessionID string) string {
	if plain.MatchString(sessionID) {
		return sessionID
	}
	sum := sha256.Sum256([]byte(sessionID))
	return fmt.Sprintf("_%x", sum[:16]) // no plain name begins with an underscore
}

// suites hands out numbers: of cases, and of dispatches. What has been handed out stands on disk; only the suites that
// have a turn running are known here.
type suites struct {
	mu      sync.Mutex
	running map[string]*suite
}

// suite is a session's folder while turns of it run.
type suite struct {
	turns int // guarded by suites.mu

	mu   sync.Mutex
	read bool  // last is known
	last int64 // dispatch_id
}

// open makes the folder of a new case. Its number was never used before, whatever process has made the others.
func (all *suites) open(root, sessionID string) (*folder, error) {
	id := SuiteID(sessionID)
	s := all.enter(id)
	f, err := s.claim(root, id)
	if err != nil {
		all.leave(id, s)
		return nil, err
	}
	f.close = func() {
		f.dir.Close()
		all.leave(id, s)
	}
	return f, nil
}

func (all *suites) enter(id string) *suite {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.running == nil {
		all.running = map[string]*suite{}
	}
	s := all.running[id]
	if s == nil {
		s = &suite{}
		all.running[id] = s
	}
	s.turns++
	return s
}

func (all *suites) leave(id string, s *suite) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.turns--; s.turns == 0 {
		delete(all.running, id)
	}
}

// claim makes the folder with the next number.
func (s *suite) claim(root, id string) (*folder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if err := top.MkdirAll(calibrate+"/"+id, 0o700); err != nil {
		return nil, err
	}
	dir, err := top.OpenRoot(calibrate + "/" + id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	if !s.read {
		s.last, s.read = takeStock(dir, entries), true
	}
	name := "C" + strconv.FormatInt(greatest(entries)+1, 10)
	if err := dir.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	own, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &folder{caseID: name, path: filepath.Join(root, filepath.FromSlash(calibrate), id, name), dir: own, suite: s}, nil
}

// absurd is a number that we have not written: JSON's readers do not agree on integers from here on. It is passed over,
// so that a forged one cannot use all numbers up.
const absurd = 1 << 53

// greatest is that of the cases there are, or 0.
func greatest(entries []fs.DirEntry) int64 {
	var most int64
	for _, e := range entries {
		digits, is := strings.CutPrefix(e.Name(), "C")
		if n, err := strconv.ParseInt(digits, 10, 64); is && err == nil && n < absurd {
			most = max(most, n)
		}
	}
	return most
}

// takeStock returns the greatest dispatch_id of a suite that no turn runs in. What still waits there is of a process
// that is no more, and is told so: else somebody would work on it for nobody.
func takeStock(dir *os.Root, entries []fs.DirEntry) int64 {
	var last int64
	for _, e := range entries {
		sub, err := dir.OpenRoot(e.Name())
		if err != nil {
			continue // no folder
		}
		if b, err := readFile(sub, signalFile, maxSignal); err == nil {
			if s, err := decodeSignal(b); err == nil && s.DispatchID < absurd {
				last = max(last, s.DispatchID)
				orphaned(sub, s)
			}
		}
		sub.Close()
	}
	return last
}

func orphaned(dir *os.Root, s Signal) {
	if s.Status != Waiting {
		return
	}
	s.Status, s.Error = Failed, "interrupted: the gateway was restarted"
	if b, err := s.encode(); err == nil {
		_ = writeFile(dir, signalFile, b) // nobody waits for it, so that this is a courtesy
	}
}
