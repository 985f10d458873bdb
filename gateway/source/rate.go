package source

import "time"

// rate counts events of the last second, in slots of a tenth of it.
type rate struct {
	slots [10]int
	last  int64 // number of the newest slot, counted from 1970
}

const slot = 100 * time.Millisecond

func (r *rate) add(now time.Time) {
	r.move(now)
	r.slots[r.last%int64(len(r.slots))]++
}

// perSecond is how many events came in the second before now.
func (r *rate) perSecond(now time.Time) int {
	r.move(now)
	sum := 0
	for _, n := range r.slots {
		sum += n
	}
	return sum
}

// move forgets the slots that are older than a second.
func (r *rate) move(now time.Time) {
	newest := now.UnixNano() / int64(slot)
	if newest-r.last >= int64(len(r.slots)) {
		r.slots = [10]int{}
		r.last = newest
	}
	for r.last < newest {
		r.last++
		r.slots[r.last%int64(len(r.slots))] = 0
	}
}
