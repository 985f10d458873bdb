package bus

import (
	"sort"
	"sync"
)

// ring is the last signals in memory, for all who read. Their texts are shared, and never change.
type ring struct {
	mu       sync.Mutex
	places   [KeptSignals]logged
	from, to uint64        // the ones that are there, counted from the first ever; each lies at its number modulo the size
	bytes    int           // of their texts
	last     uint64        // sequence of the last one that there was
	added    chan struct{} // closed when one comes; nil while nobody waits for that
}

type logged struct {
	seq  uint64
	text []byte
}

// add puts a signal behind all others, in the place of the oldest if there is no room. It wakes who waits for one.
func (r *ring) add(seq uint64, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.to-r.from == KeptSignals || r.to > r.from && r.bytes+len(text) > maxSignalBytes {
		oldest := r.at(r.from)
		r.bytes -= len(oldest.text)
		*oldest = logged{}
		r.from++
	}
	*r.at(r.to) = logged{seq, text}
	r.to++
	r.bytes += len(text)
	r.last = seq
	if r.added != nil {
		close(r.added)
		r.added = nil
	}
}

// next copies the oldest signals behind a sequence, as many as fit, and says how many. If there are none it returns a
// channel that is closed when one comes.
func (r *ring) next(seq uint64, to []logged) (int, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := int(r.to - r.from)
	i := sort.Search(there, func(i int) bool { return r.at(r.from+uint64(i)).seq > seq })
	if i == there {
		if r.added == nil {
			r.added = make(chan struct{})
		}
		return 0, r.added
	}
	n := min(len(to), there-i)
	for j := range n {
		to[j] = *r.at(r.from + uint64(i+j))
	}
	return n, nil
}

// end is the sequence of the last signal that there was.
func (r *ring) end() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *ring) at(number uint64) *logged { return &r.places[number%KeptSignals] }
