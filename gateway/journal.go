package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
)

// journals is the folder where every session writes what its mailbox took, a file each. What is said stands in it, so
// only the owner may read it.
type journals struct {
	dir string
	log *slog.Logger
}

// openJournals makes the folder and sees that files can be made in it. An empty name is no folder.
func openJournals(dir string, log *slog.Logger) (*journals, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("gateway: the folder for journals: %w; choose another one with --journal", err)
	}
	probe, err := os.CreateTemp(dir, ".probe")
	if err != nil {
		return nil, fmt.Errorf("gateway: the folder for journals cannot be written to: %w; choose another one with --journal", err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	return &journals{dir: dir, log: log}, nil
}

// of opens a session's journal. It is nil where there are none, or where the file cannot be made: the log says so, and
// the session goes on without.
func (j *journals) of(id string) io.WriteCloser {
	if j == nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(j.dir, id+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		j.log.Error("no journal for a session", "session", id, "error", errNoPath(err))
		return nil
	}
	return f
}

// errNoPath is what went wrong with a file, without its path.
func errNoPath(err error) error {
	if p, ok := err.(*os.PathError); ok {
		return p.Err
	}
	return err
}
