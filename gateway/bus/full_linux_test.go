package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestAFullDisk fills a small disk of a process of its own.
func TestAFullDisk(t *testing.T) {
	cmd := helper(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var said bytes.Buffer
	cmd.Stdout = &said
	err := cmd.Run()
	if errors.Is(err, syscall.EPERM) || bytes.Contains(said.Bytes(), []byte("cannot mount")) {
		t.Skipf("no disk of our own here: %v %s", err, said.Bytes())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	t.Logf("%s", said.Bytes())
}

// disk is a folder that is a disk of 64 MiB, and the file that fills it.
type disk struct{ dir, filler string }

func (d disk) fill() error {
	f, err := os.Create(d.filler)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; { // to the last byte
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

func fillTheDisk() error {
	d := disk{dir: os.Getenv(dirVar)}
	d.filler = filepath.Join(d.dir, "filler")
	if err := syscall.Mount("none", d.dir, "tmpfs", 0, "size=64m"); err != nil {
		fmt.Println("cannot mount:", err)
		return err
	}
	if err := d.refuses(); err != nil {
		return fmt.Errorf("with a reserve: %w", err)
	}
	for range 3 {
		if err := d.breaks(); err != nil {
			return fmt.Errorf("without a reserve: %w", err)
		}
	}
	return nil
}

// count says how many events of which session are kept, in order and without gaps.
func count(ctx context.Context, b *Bus, id string) (uint64, error) {
	for s, err := range b.Sessions(ctx) {
		if err != nil {
			return 0, err
		}
		if s.Session.ID() != id {
			continue
		}
		for i, e := range s.Events {
			if !bytes.Equal(e, eventOf(id, s.First+uint64(i))) {
				return 0, fmt.Errorf("event %d is %q", s.First+uint64(i), e)
			}
		}
		return s.First + uint64(len(s.Events)) - 1, nil
	}
	return 0, nil
}

// refuses is what a full disk comes to: no write is tried.
func (d disk) refuses() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := Open(ctx, Config{Dir: filepath.Join(d.dir, "data")})
	if err != nil {
		return err
	}
	defer b.Close()
	s := b.Session("a")
	make := func(seq uint64) []byte { return eventOf("a", seq) }
	if err := errors.Join(s.Save(ctx, []byte("state")), flood(s, 1, 100, make)); err != nil {
		return err
	}
	if err := d.fill(); err != nil {
		return err
	}
	for range 3 {
		err := s.Append(ctx, 101, make(101))
		if !errors.Is(err, ErrFull) {
			return fmt.Errorf("append on a full disk: %w", err)
		}
		fmt.Println(err)
		if err := s.Save(ctx, nil); !errors.Is(err, ErrFull) {
			return fmt.Errorf("save on a full disk: %w", err)
		}
	}
	if n, err := count(ctx, b, "a"); n != 100 || err != nil {
		return fmt.Errorf("on the full disk there are %d events: %w", n, err)
	}
	if err := os.Remove(d.filler); err != nil {
		return err
	}
	if err := flood(s, 101, 200, make); err != nil {
		return fmt.Errorf("there is room again: %w", err)
	}
	if n, err := count(ctx, b, "a"); n != 200 || err != nil {
		return fmt.Errorf("in the end there are %d events: %w", n, err)
	}
	return s.Delete(ctx)
}

// breaks is what happens when somebody else takes the reserve in the very moment of a write: the server stops for good,
// and a new one takes its place.
func (d disk) breaks() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := Open(ctx, Config{Dir: filepath.Join(d.dir, "data")})
	if err != nil {
		return err
	}
	defer b.Close()
	b.embedded.reserve = 0
	s, other := b.Session("a"), b.Session("b")
	make := func(seq uint64) []byte { return eventOf("a", seq) }
	if err := errors.Join(s.Save(ctx, []byte("state")), other.Save(ctx, []byte("state")), flood(s, 1, 100, make), flood(other, 1, 100, make)); err != nil {
		return err
	}
	if err := d.fill(); err != nil {
		return err
	}
	began := time.Now()
	if err := flood(s, 101, 3000, make); !errors.Is(err, ErrFull) {
		return fmt.Errorf("append on a full disk: %w", err)
	}
	acknowledged := s.Next() - 1
	fmt.Printf("%d acknowledged; the error came after %v\n", acknowledged, time.Since(began))
	if err := s.Append(ctx, s.Next(), make(s.Next())); !errors.Is(err, ErrFull) {
		return fmt.Errorf("append on a full disk again: %w", err)
	}
	if n, err := count(ctx, b, "a"); n < acknowledged || err != nil {
		return fmt.Errorf("on the full disk there are %d of %d events: %w", n, acknowledged, err)
	}
	if err := os.Remove(d.filler); err != nil {
		return err
	}
	began = time.Now()
	for err := ErrFull; errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable); runtime.Gosched() {
		if err = s.Append(ctx, s.Next(), make(s.Next())); err != nil && ctx.Err() != nil {
			return err
		}
	}
	fmt.Printf("it wrote again %v after there was room\n", time.Since(began))
	if err := errors.Join(flood(s, s.Next(), 3000, make), flood(other, 101, 200, make)); err != nil {
		return fmt.Errorf("there is room again: %w", err)
	}
	if n, err := count(ctx, b, "a"); n != 3000 || err != nil {
		return fmt.Errorf("in the end there are %d events: %w", n, err)
	}
	return errors.Join(s.Delete(ctx), other.Delete(ctx))
}
