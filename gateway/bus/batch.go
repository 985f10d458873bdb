package bus

import (
	"encoding/binary"
	"errors"
)

// A message of the event stream holds consecutive events of one conversation: the number of the first as a uvarint, and
// then for each its length as a uvarint and its bytes.

var errBatch = errors.New("bus: a message is not one of ours")

// batchOverhead is more than the numbers around one event take.
const batchOverhead = 2 * binary.MaxVarintLen64

func encodeBatch(events []pending) []byte {
	size := binary.MaxVarintLen64
	for _, e := range events {
		size += binary.MaxVarintLen64 + len(e.event)
	}
	data := binary.AppendUvarint(make([]byte, 0, size), events[0].seq)
	for _, e := range events {
		data = binary.AppendUvarint(data, uint64(len(e.event)))
		data = append(data, e.event...)
	}
	return data
}

// decodeBatch returns the number of the first event and the events, which share memory with data.
func decodeBatch(data []byte) (first uint64, events [][]byte, err error) {
	first, n := binary.Uvarint(data)
	if n <= 0 || first == 0 {
		return 0, nil, errBatch
	}
	for data = data[n:]; len(data) > 0; {
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return 0, nil, errBatch
		}
		data = data[n:]
		events = append(events, data[:size:size])
		data = data[size:]
	}
	if len(events) == 0 || first+uint64(len(events)) < first {
		return 0, nil, errBatch
	}
	return first, events, nil
}
