package source

import "time"

// meter counts events of the last second, in slots of a tenth of it.
type meter struct {
	slots [10]int
	last  int64 // number of the newest slot, counted from 1970
}

const slot = 100 * time.Millisecond

func (m *meter) add(n int, now time.Time) {
	m.move(now)
	m.slots[m.last%int64(len(m.slots))] += n
}

// perSecond is how many events came in the second before now.
func (m *meter) perSecond(now time.Time) int {
	m.move(now)
	sum := 0
	for _, n := range m.slots {
		sum += n
	}
	return sum
}

// move forgets the slots that are older than a second.
func (m *meter) move(now time.Time) {
	newest := now.UnixNano() / int64(slot)
	if newest-m.last >= int64(len(m.slots)) {
		m.slots = [10]int{}
		m.last = newest
	}
	for m.last < newest {
		m.last++
		m.slots[m.last%int64(len(m.slots))] = 0
	}
}
