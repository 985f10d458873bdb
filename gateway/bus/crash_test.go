package bus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	helperVar = "VELA_BUS_TEST_HELPER"
	dirVar    = "VELA_BUS_TEST_DIR"
)

var helpers = map[string]func() error{
	"append": appendUntilKilled,
	"full":   fillTheDisk,
	"open":   openOnce,
}

func helper(t *testing.T, name, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), helperVar+"="+name, dirVar+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// eventOf differs between conversations, and in length.
func eventOf(id string, seq uint64) []byte {
	return fmt.Appendf(nil, "%s %d %s", id, seq, strings.Repeat("x", int(seq*7919%900)))
}

// appendUntilKilled goes on with all that is kept, in eight conversations at a time, as fast as it can, and says what
// has been acknowledged: an event, a state, an end.
func appendUntilKilled() error {
	ctx := context.Background()
	b, err := Open(ctx, Config{Dir: os.Getenv(dirVar)})
	if err != nil {
		return err
	}
	fmt.Println("open")
	var live []*Session
	for s, err := range b.Sessions(ctx) {
		if err != nil {
			return err
		}
		live = append(live, s.Session)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var s *Session
			if i < len(live) {
				s = live[i]
			}
			for n := 0; ; n++ {
				if s == nil {
					s = b.Session(fmt.Sprintf("%d-%d-%d", i, n, rand.Uint64()))
				}
				var err error
				if s, err = work(ctx, s); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.New("the helper was not killed")
}

// work does one of the things that happen to a conversation. It returns nil for it when that has ended.
func work(ctx context.Context, s *Session) (*Session, error) {
	from := max(s.Next(), 1)
	state := fmt.Appendf(nil, "%d %s", from, strings.Repeat("y", rand.N(40<<10)))
	if err := s.Save(ctx, state); err != nil {
		return nil, err
	}
	fmt.Println("state", s.ID(), from)
	if rand.N(40) == 0 {
		fmt.Println("deleting", s.ID())
		if err := s.Delete(ctx); err != nil {
			return nil, err
		}
		fmt.Println("delete", s.ID())
		return nil, nil
	}
	var wg sync.WaitGroup
	var failed error
	for seq := from; seq < from+uint64(1+rand.N(60)); seq++ {
		wg.Add(1)
		err := s.AppendAsync(seq, eventOf(s.ID(), seq), func(err error) {
			if err != nil {
				failed = err
			} else {
				fmt.Println("event", s.ID(), seq)
			}
			wg.Done()
		})
		if err != nil {
			return nil, err
		}
	}
	wg.Wait()
	return s, failed
}

// promised is what a helper said to be acknowledged.
type promised struct {
	event, state map[string]uint64
	deleted      map[string]bool
}

func (p *promised) take(t *testing.T, line string) {
	var what, id string
	var n uint64
	fmt.Sscan(line, &what, &id, &n)
	switch what {
	case "event":
		p.event[id] = n
	case "state":
		p.state[id] = n
	case "deleting": // from here on it may be there or not
		delete(p.event, id)
		delete(p.state, id)
	case "delete":
		p.deleted[id] = true
	case "open":
	default:
		t.Fatalf("the helper says %q", line)
	}
}

func TestWhatIsAcknowledgedSurvivesKill(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 10
	}
	dir := t.TempDir()
	p := &promised{event: map[string]uint64{}, state: map[string]uint64{}, deleted: map[string]bool{}}
	acknowledged := 0
	for kill := range kills {
		cmd := helper(t, "append", dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		after := rand.N(2000)
		if kill%10 == 0 {
			after = 1 // as soon as it is open
		}
		lines := bufio.NewScanner(out)
		for n := 1; lines.Scan(); n++ { // to the last one it wrote, which may be after the signal
			p.take(t, lines.Text())
			acknowledged++
			if n == after {
				must(t, cmd.Process.Kill())
			}
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("the helper ended by itself: %v", err)
		}
		p.check(t, dir)
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	t.Logf("%d kills, %d acknowledgements, %d conversations deleted", kills, acknowledged, len(p.deleted))
}

func (p *promised) check(t *testing.T, dir string) {
	t.Helper()
	b := open(t, Config{Dir: dir})
	defer b.Close()
	all := kept(t, b)
	for id := range p.deleted {
		if s, there := all[id]; there {
			t.Errorf("%s is deleted, and there: state %.20q, %d events from %d", id, s.State, len(s.Events), s.First)
		}
	}
	for id, n := range p.state {
		var state uint64
		if fmt.Sscan(string(all[id].State), &state); state < n {
			t.Errorf("%s: the state is %.20q, and %d was acknowledged", id, all[id].State, n)
		}
	}
	for id, last := range p.event {
		s, there := all[id]
		switch {
		case !there:
			t.Errorf("%s is gone, and %d events of it were acknowledged", id, last)
		case s.First != max(1, s.Session.last-min(s.Session.last, maxEvents)+1):
			t.Errorf("%s begins with %d and ends with %d", id, s.First, s.Session.last)
		case s.First+uint64(len(s.Events))-1 < last:
			t.Errorf("%s ends with %d, and %d was acknowledged", id, s.First+uint64(len(s.Events))-1, last)
		}
		for i, e := range s.Events {
			if seq := s.First + uint64(i); !bytes.Equal(e, eventOf(id, seq)) {
				t.Fatalf("%s: event %d is %q", id, seq, e)
			}
		}
	}
}

// openOnce says how opening went.
func openOnce() error {
	b, err := Open(context.Background(), Config{Dir: os.Getenv(dirVar)})
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println("open")
	return b.Close()
}

func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Config{Dir: dir})
	s := fresh(t, b, "a")
	appendAll(t, s, 1, 5)
	out, err := helper(t, "open", dir).Output()
	must(t, err)
	if !strings.Contains(string(out), "in use by another gateway") {
		t.Errorf("the second says %q", out)
	}
	appendAll(t, s, 6, 10)
	must(t, b.Close())
	if out, err = helper(t, "open", dir).Output(); err != nil || string(out) != "open\n" {
		t.Errorf("after the first is closed the second says %q, %v", out, err)
	}
}

// TestTheDeadStayDead goes through many crashes, each as far apart as several of the server's files: a note in one of
// them that something in another is gone is not to be relied on.
func TestTheDeadStayDead(t *testing.T) {
	dir := t.TempDir()
	dead := map[string]bool{}
	var idle []string
	n := 0
	for crash := range 8 {
		b := open(t, Config{Dir: dir})
		all := kept(t, b)
		var live []*Session
		for id, s := range all {
			if dead[id] {
				t.Fatalf("after %d crashes %s is there again, with %d events", crash, id, len(s.Events))
			}
			if !slices.Contains(idle, id) {
				live = append(live, s.Session)
			}
		}
		for _, id := range idle {
			if string(all[id].State) != "state" || len(all[id].Events) != 1 {
				t.Fatalf("%s has the state %q and %d events", id, all[id].State, len(all[id].Events))
			}
		}
		for i := range 1200 {
			if len(live) < 8 {
				live = append(live, fresh(t, b, fmt.Sprint(n)))
				n++
			}
			k := rand.N(len(live))
			s := live[k]
			must(t, s.Append(soon(t), max(1, s.Next()), make([]byte, rand.N(3000))))
			must(t, s.Save(soon(t), make([]byte, rand.N(6000))))
			if rand.N(100) == 0 {
				must(t, s.Delete(soon(t)))
				dead[s.ID()] = true
				live = slices.Delete(live, k, k+1)
			}
			if i%300 == 0 { // one that keeps a file from going as a whole
				id := fmt.Sprint("idle-", crash, "-", i)
				must(t, fresh(t, b, id).Append(soon(t), 1, event(1)))
				idle = append(idle, id)
			}
		}
		crashed := t.TempDir()
		must(t, os.CopyFS(crashed, os.DirFS(dir))) // what kill -9 leaves
		must(t, b.Close())
		dir = crashed
	}
}

// TestATornEndLeavesABeginning cuts the last file of the events anywhere, as a power failure may: what is kept of each
// conversation is a beginning of it, and it goes on from there.
func TestATornEndLeavesABeginning(t *testing.T) {
	const sessions, events = 3, 700
	original := t.TempDir()
	b := open(t, Config{Dir: original})
	var all []*Session
	for i := range sessions {
		s := b.Session(fmt.Sprint(i))
		must(t, s.Save(soon(t), []byte("state")))
		all = append(all, s)
	}
	for seq := uint64(1); seq <= events; seq++ {
		for _, s := range all {
			must(t, s.Append(soon(t), seq, eventOf(s.ID(), seq)))
		}
	}
	killed, closed := t.TempDir(), t.TempDir()
	must(t, os.CopyFS(killed, os.DirFS(original))) // what kill -9 leaves
	must(t, b.Close())
	must(t, os.CopyFS(closed, os.DirFS(original)))

	for _, from := range []string{killed, closed} {
		for i := range 25 {
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(from)))
			blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", eventStream, "msgs", "*.blk"))
			must(t, err)
			slices.Sort(blocks)
			last := blocks[len(blocks)-1]
			info, err := os.Stat(last)
			must(t, err)
			cut := rand.Int64N(info.Size())
			if i%5 == 4 { // the length is there, and the words are not
				f, err := os.OpenFile(last, os.O_RDWR, 0)
				must(t, err)
				_, err = f.WriteAt(make([]byte, info.Size()-cut), cut)
				must(t, errors.Join(err, f.Close()))
			} else {
				must(t, os.Truncate(last, cut))
			}

			b := open(t, Config{Dir: dir})
			there := kept(t, b)
			total := 0
			for _, s := range there {
				total += len(s.Events)
				if string(s.State) != "state" {
					t.Errorf("the state is %q", s.State)
				}
				for i, e := range s.Events {
					if s.First != 1 || !bytes.Equal(e, eventOf(s.Session.ID(), uint64(i+1))) {
						t.Fatalf("cut at %d of %d: event %d of %d is %.40q", cut, info.Size(), i+1, len(s.Events), e)
					}
				}
				next := max(s.Session.Next(), 1)
				must(t, s.Session.Append(soon(t), next, eventOf(s.Session.ID(), next)))
			}
			if want := int(float64(cut) / float64(info.Size()) * sessions * events); len(there) != sessions || total < want*8/10-10 {
				t.Errorf("cut at %d of %d: %d sessions and %d events are left", cut, info.Size(), len(there), total)
			}
			must(t, b.Close())
			b = open(t, Config{Dir: dir})
			again := 0
			for _, s := range kept(t, b) {
				again += len(s.Events)
			}
			if again != total+sessions {
				t.Errorf("cut at %d of %d: %d events, and %d after going on", cut, info.Size(), total, again)
			}
			must(t, b.Close())
		}
	}
}
