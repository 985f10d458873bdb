package ganglia_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"vela/protocol/ganglia"
)

var uuid = [16]byte{0x9b, 0x2f, 0x6a, 0x44, 0x6f, 0x0e, 0x4c, 0x1d, 0x8f, 0x57, 0x0d, 0x8f, 0x3a, 0x1c, 0x7e, 0x21}

// chunk is a packet's own view of itself, read without the package.
type chunk struct {
	Type       string `json:"type"`
	TransferID string `json:"transfer_id"`
	ChunkIndex int    `json:"chunk_index"`
	Total      int    `json:"total_chunks"`
	Data       string `json:"data"`
}

func chunks(t testing.TB, packets [][]byte) []chunk {
	t.Helper()
	var all []chunk
	for _, p := range packets {
		var c chunk
		d := json.NewDecoder(bytes.NewReader(p))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			t.Fatalf("%.100s: %v", p, err)
		}
		all = append(all, c)
	}
	return all
}

// transfers are shared with the browser's tests.
type transferVector struct {
	Name  string
	Steps []struct {
		At     int64
		Packet string
		Object *string // nil where the packet makes nothing whole
		Error  string  // a Drop, or "packet"
	}
	Dropped map[ganglia.Drop]int
}

func transferVectors(t testing.TB) []transferVector {
	t.Helper()
	b, err := os.ReadFile("testdata/transfers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []transferVector
	if err := json.Unmarshal(b, &all); err != nil || len(all) == 0 {
		t.Fatal("no vectors: ", err)
	}
	return all
}

func TestTransfers(t *testing.T) {
	for _, v := range transferVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			var j ganglia.Joiner
			for i, step := range v.Steps {
				got, err := j.Join([]byte(step.Packet), step.At)
				switch {
				case step.Object == nil && got != nil || step.Object != nil && string(got) != *step.Object:
					t.Errorf("step %d gives %q", i, got)
				case step.Error == "" && err != nil, step.Error != "" && err == nil:
					t.Errorf("step %d: %v, want %q", i, err, step.Error)
				case err != nil:
					var drop ganglia.Drop
					if errors.As(err, &drop); string(drop) != strings.TrimPrefix(step.Error, "packet") {
						t.Errorf("step %d: %v, want %s", i, err, step.Error)
					}
				}
			}
			if got := j.Dropped(); !maps.Equal(got, v.Dropped) {
				t.Errorf("dropped %v, want %v", got, v.Dropped)
			}
		})
	}
}

// The contract's own example: 40 KB. Its drawing shows three packets, each of which would be over the limit beside it.
func TestFortyKilobytesGoInFourPackets(t *testing.T) {
	for _, n := range []int{40_000, 40 << 10} {
		object := json.RawMessage(`{"type":"content","delta":"` + strings.Repeat("x", n-29) + `"}`)
		packets := slices.Collect(ganglia.Split(object, uuid))
		if len(object) != n || len(packets) != 4 {
			t.Errorf("%d bytes go in %d packets", len(object), len(packets))
		}
		for i, c := range chunks(t, packets) {
			if want := (chunk{"chunk", "9b2f6a44-6f0e-4c1d-8f57-0d8f3a1c7e21", i, 4, c.Data}); c != want {
				t.Errorf("%.100v", c)
			}
		}
	}
}

func TestWhatFitsGoesAsItIs(t *testing.T) {
	fits := bytes.Repeat([]byte("x"), 14_336)
	if got := slices.Collect(ganglia.Split(fits, uuid)); len(got) != 1 || !bytes.Equal(got[0], fits) {
		t.Errorf("%d packets", len(got))
	}
	if got := slices.Collect(ganglia.Split(append(fits, 'x'), uuid)); len(got) != 2 {
		t.Errorf("one byte more goes in %d packets", len(got))
	}
}

// anyObject is JSON of about n bytes of text of a kind that is hard on those who cut: characters of one to four bytes,
// escapes, half surrogates, control characters.
func anyObject(t testing.TB, r *rand.Rand, n int) []byte {
	t.Helper()
	alphabets := []string{"a", "äöü", "語彙", "😀👩‍👩‍👧‍👦", "\x00\x1f\"\\/", "\u2028\ufeff\ufffd", "a\nb\r\t", "e\u0301 \u202e"}
	var b strings.Builder
	for b.Len() < n {
		runes := []rune(alphabets[r.IntN(len(alphabets))])
		b.WriteString(strings.Repeat(string(runes[r.IntN(len(runes))]), 1+r.IntN(40)))
	}
	object, err := ganglia.Encode(ganglia.Content{Delta: b.String()})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Objects of any size and any text, many at once, come back whole whatever the order of their packets. No packet is over
// the limit, and the two kinds of reader in the field, one of which decodes piece by piece and the other joins first, read
// the same.
func TestAnythingComesBack(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	sizes := []int{0, 14_300, 14_336, 14_337, 100_000, 1_063_000, 4 << 20} // 1,063,000 is about where three digits end
	for range 24 {
		sizes = append(sizes, r.IntN(1<<uint(8+r.IntN(11))))
	}
	var all [][]byte
	want := map[string]int{}
	for i, size := range sizes {
		object := []byte(strings.Repeat("x", size)) // of exactly this size, which a Joiner carries as well
		if r.IntN(2) == 0 && size < 4<<20 {
			object = anyObject(t, r, size)
		}
		id := uuid
		id[15] = byte(i)
		packets := slices.Collect(ganglia.Split(object, id))
		for _, p := range packets {
			if len(p) > 14_336 {
				t.Fatalf("a packet of %d bytes", len(p))
			}
		}
		if len(packets) == 1 {
			continue
		}
		want[string(object)]++
		all = append(all, packets...)
		var one []byte
		var joined strings.Builder
		for _, c := range chunks(t, packets) {
			piece, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				t.Fatal(err)
			}
			one = append(one, piece...)
			joined.WriteString(c.Data)
		}
		other, err := base64.StdEncoding.DecodeString(joined.String())
		if err != nil || !bytes.Equal(one, object) || !bytes.Equal(other, object) {
			t.Fatalf("%d bytes are read in another way: %v", len(object), err)
		}
	}
	r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	var j ganglia.Joiner
	for i, p := range all {
		object, err := j.Join(p, int64(i))
		if err != nil {
			t.Fatal(err)
		}
		if object != nil {
			want[string(object)]--
		}
		if r.IntN(4) == 0 { // again, which is no news
			if object, err := j.Join(all[r.IntN(i+1)], int64(i)); object != nil || err != nil {
				t.Fatalf("%d bytes twice: %v", len(object), err)
			}
		}
	}
	for object, n := range want {
		if n != 0 {
			t.Errorf("an object of %d bytes is missing %d times", len(object), n)
		}
	}
	if got := j.Dropped(); len(got) > 0 {
		t.Errorf("dropped %v", got)
	}
}

// What reads no further than it must takes no more than it asks for.
func TestSplitStopsWhenItsReaderDoes(t *testing.T) {
	n := 0
	for range ganglia.Split(make([]byte, 1<<20), uuid) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d packets", n)
	}
}

func TestPacketsMayBeKept(t *testing.T) {
	object := anyObject(t, rand.New(rand.NewPCG(1, 1)), 60_000)
	var kept, copies [][]byte
	for p := range ganglia.Split(object, uuid) {
		kept, copies = append(kept, p), append(copies, bytes.Clone(p))
	}
	if !slices.EqualFunc(kept, copies, bytes.Equal) {
		t.Error("a packet was written to after it was handed out")
	}
}

func piece(id string, index, total int, data []byte) []byte {
	return fmt.Appendf(nil, `{"type":"chunk","transfer_id":%q,"chunk_index":%d,"total_chunks":%d,"data":%q}`, id, index, total, base64.StdEncoding.EncodeToString(data))
}

func mustJoin(t *testing.T, j *ganglia.Joiner, packet []byte, now int64) []byte {
	t.Helper()
	object, err := j.Join(packet, now)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// A peer that begins transfers and ends none keeps neither memory nor others' transfers that still go on.
func TestOpenTransfersAreBounded(t *testing.T) {
	var j ganglia.Joiner
	for i := range 32 {
		mustJoin(t, &j, piece(fmt.Sprint(i), 0, 3, []byte("a")), int64(i))
	}
	mustJoin(t, &j, piece("0", 1, 3, []byte("b")), 40) // the oldest, but not the quietest any more
	mustJoin(t, &j, piece("32", 0, 3, []byte("a")), 41)
	if got := j.Dropped(); !maps.Equal(got, map[ganglia.Drop]int{ganglia.DropCrowded: 1}) {
		t.Errorf("dropped %v", got)
	}
	if got := mustJoin(t, &j, piece("0", 2, 3, []byte("c")), 42); string(got) != "abc" {
		t.Errorf("%q", got)
	}
	mustJoin(t, &j, piece("1", 1, 3, []byte("b")), 43)
	if got := mustJoin(t, &j, piece("1", 2, 3, []byte("c")), 44); got != nil {
		t.Errorf("the quietest was kept: %q", got)
	}
}

func TestObjectsAreBounded(t *testing.T) {
	var j ganglia.Joiner
	const size = 48 << 10 // bytes; in base64 as much as a packet may be, but for 64 KiB's rest
	data := make([]byte, size-1<<10)
	total := 16<<20/len(data) + 1
	for i := range total - 1 {
		mustJoin(t, &j, piece("a", i, total, data), 0)
	}
	rest := 16<<20 - (total-1)*len(data)
	if _, err := j.Join(piece("a", total-1, total, make([]byte, rest+1)), 0); !errors.Is(err, ganglia.DropSize) {
		t.Errorf("one byte too many: %v", err)
	}
	for i := range total - 1 {
		mustJoin(t, &j, piece("b", i, total, data), 0)
	}
	if got := mustJoin(t, &j, piece("b", total-1, total, make([]byte, rest)), 0); len(got) != 16<<20 {
		t.Errorf("as much as may be came as %d bytes", len(got))
	}
	if got := j.Dropped(); !maps.Equal(got, map[ganglia.Drop]int{ganglia.DropSize: 1}) {
		t.Errorf("dropped %v", got)
	}
}

func TestPacketsAreBounded(t *testing.T) {
	var j ganglia.Joiner
	most := []byte(`"` + strings.Repeat("x", 64<<10-2) + `"`)
	if got := mustJoin(t, &j, most, 0); len(got) != len(most) {
		t.Errorf("%d bytes", len(got))
	}
	for name, bomb := range map[string][]byte{
		"long":          append(most, ' '),
		"deep":          []byte(strings.Repeat("[", 60_000)),
		"deep chunk":    []byte(`{"type":"chunk","transfer_id":` + strings.Repeat(`{"a":`, 12_000)),
		"endless digit": []byte(`{"type":"chunk","chunk_index":` + strings.Repeat("9", 60_000)),
	} {
		var drop ganglia.Drop
		if got, err := j.Join(bomb, 0); got != nil || err == nil || errors.As(err, &drop) || len(err.Error()) > 200 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// The ids of what is over are forgotten in time, the oldest first.
func TestEndedTransfersAreBounded(t *testing.T) {
	var j ganglia.Joiner
	for i := range 256 {
		if mustJoin(t, &j, piece(fmt.Sprint(i), 0, 1, []byte("a")), 0) == nil {
			t.Fatal(i)
		}
	}
	if mustJoin(t, &j, piece("0", 0, 1, []byte("a")), 0) != nil {
		t.Error("the oldest of 256 came twice")
	}
	mustJoin(t, &j, piece("256", 0, 1, []byte("a")), 0)
	if mustJoin(t, &j, piece("0", 0, 1, []byte("a")), 0) == nil {
		t.Error("257 ids are kept")
	}
	for _, id := range []string{"2", "256"} {
		if mustJoin(t, &j, piece(id, 0, 1, []byte("a")), 0) != nil {
			t.Errorf("not the oldest was forgotten, but %s", id)
		}
	}
}

func TestExpireNeedsNoPacket(t *testing.T) {
	var j ganglia.Joiner
	mustJoin(t, &j, piece("a", 0, 2, []byte("a")), 0)
	j.Expire(30_000)
	if got := j.Dropped(); len(got) > 0 {
		t.Errorf("after 30 s: %v", got)
	}
	j.Expire(30_001)
	if got := j.Dropped(); got[ganglia.DropLate] != 1 {
		t.Errorf("after more: %v", got)
	}
}

// FuzzJoin sends packets, cut from anything at its line ends, to one Joiner. Nothing panics, what comes out came in, and
// what is said about drops adds up.
func FuzzJoin(f *testing.F) {
	for _, v := range transferVectors(f) {
		var lines []string
		for _, step := range v.Steps {
			lines = append(lines, step.Packet)
		}
		f.Add([]byte(strings.Join(lines, "\n")), uint16(1000))
		f.Add([]byte(strings.Join(lines, "\n")), uint16(40_000))
	}
	f.Fuzz(func(t *testing.T, packets []byte, pace uint16) {
		var j ganglia.Joiner
		now, told := int64(0), 0
		for p := range bytes.SplitSeq(packets, []byte("\n")) {
			now += int64(pace)
			object, err := j.Join(p, now)
			var drop ganglia.Drop
			if errors.As(err, &drop) {
				told++
			}
			if err != nil && object != nil || len(object) > len(packets) {
				t.Fatalf("%d bytes of %d: %v", len(object), len(packets), err)
			}
		}
		counted := 0
		for why, n := range j.Dropped() {
			if counted += n; n < 1 || why == "" {
				t.Errorf("%d of %q", n, why)
			}
		}
		if silent := j.Dropped()[ganglia.DropLate] + j.Dropped()[ganglia.DropCrowded]; counted != told+silent {
			t.Errorf("%d drops were counted, %d told, %d happened between", counted, told, silent)
		}
	})
}

// FuzzSplit cuts anything and joins it again, last piece first.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("x"), uint16(15_000), uint8(7))
	f.Fuzz(func(t *testing.T, unit []byte, times uint16, rotate uint8) {
		object := bytes.Repeat(unit, min(int(times), 1<<17/max(1, len(unit))))
		packets := slices.Collect(ganglia.Split(object, uuid))
		var j ganglia.Joiner
		var got [][]byte
		for i := range packets {
			p := packets[len(packets)-1-(i+int(rotate))%len(packets)]
			if len(p) > ganglia.MaxPacket {
				t.Fatalf("a packet of %d bytes", len(p))
			}
			if len(packets) == 1 {
				return
			}
			if joined, err := j.Join(p, 0); err != nil {
				t.Fatal(err)
			} else if joined != nil {
				got = append(got, joined)
			}
		}
		if len(got) != 1 || !bytes.Equal(got[0], object) {
			t.Fatalf("%d objects came of one of %d bytes", len(got), len(object))
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			object := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for p := range ganglia.Split(object, uuid) {
					if len(p) > ganglia.MaxPacket {
						b.Fatal(len(p))
					}
				}
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	for _, size := range []int{100 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			packets := slices.Collect(ganglia.Split(make([]byte, size), uuid))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				var j ganglia.Joiner
				whole := 0
				for _, p := range packets {
					object, err := j.Join(p, 0)
					if err != nil {
						b.Fatal(err)
					}
					whole += len(object)
				}
				if whole != size {
					b.Fatal(whole)
				}
			}
		})
	}
}
