package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Extension is what the names of scripts end in.
const Extension = ".vela"

// RunFiles runs scripts one after the other against a gateway, and writes to w what became of each, and a line with the
// sum. A path that is a directory stands for the scripts in it.
//
// failed counts the scripts that failed. The error is about what is no failure of the gateway: files that cannot be read
// or are wrong, before anything has run; an address where nothing listens; a context that is done; a w that takes
// nothing.
func RunFiles(ctx context.Context, w io.Writer, g Gateway, paths []string) (failed int, err error) {
	scripts, err := load(paths)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for _, s := range scripts {
		r := Run(ctx, s, g)
		if ctx.Err() != nil {
			return failed, context.Cause(ctx)
		}
		if unreachable(r.Err) {
			return failed, errors.Unwrap(r.Err)
		}
		if !r.Passed() {
			failed++
		}
		if _, err := fmt.Fprintln(w, r); err != nil {
			return failed, err
		}
	}
	_, err = fmt.Fprintf(w, "%d passed, %d failed (%d ms)\n", len(scripts)-failed, failed, time.Since(began).Milliseconds())
	return failed, err
}

// load parses every script, and tells of all errors at once.
func load(paths []string) ([]*Script, error) {
	files, err := find(paths)
	if err != nil {
		return nil, err
	}
	var scripts []*Script
	var errs []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s, err := Parse(file, string(text))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		scripts = append(scripts, s)
	}
	return scripts, errors.Join(errs...)
}

// find replaces directories by the scripts in them, in the order of their names.
func find(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := filepath.Glob(filepath.Join(path, "*"+Extension))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no script here: name files or directories with *%s in them", Extension)
	}
	return files, nil
}
