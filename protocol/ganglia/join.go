package ganglia

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// The bounds of what a [Joiner] takes and keeps.
const (
	maxTransfers = 32                // open at once
	maxTransfer  = 16 << 20          // bytes of one object
	maxChunks    = maxTransfer >> 10 // of one object: 1 KiB each, if it is as long as it may be
	maxSilence   = 30_000            // ms between two chunks of an object
	maxID        = 64                // bytes of a transfer's id; a UUID has 36
	maxReceived  = 64 << 10          // bytes of a packet: others' chunks are longer than ours
	maxClosed    = 8 * maxTransfers  // ids of transfers whose late chunks are known as such
)

// A Joiner puts the chunks of long objects together again, in whatever order they come. Its zero value is ready. It is
// not for several goroutines at once.
//
// It keeps at most 32 open transfers of 16 MiB each. When one more begins, the one that waited longest is given up, and so
// is any that gets no new chunk for 30 s.
//
// A lost connection ends all transfers: go on with a new Joiner. Times are in ms, such as Unix ms.
type Joiner struct {
	open    map[string]*transfer
	closed  []string // ids of the last transfers that ended, whole or not: a ring
	oldest  int      // in closed, once it is full
	dropped map[Drop]int
}

// Drop says why a transfer was given up. It is the error of the chunk that was the cause, where one was.
type Drop string

// Why transfers are given up.
const (
	DropID      Drop = "transfer_id"  // a chunk said not what it is a piece of
	DropTotal   Drop = "total_chunks" // the number of chunks is none, or was another in another chunk
	DropIndex   Drop = "chunk_index"  // a chunk has no place among that many
	DropData    Drop = "data"         // it is no base64
	DropSize    Drop = "size"         // more than 16 MiB, or more than 16,384 chunks
	DropCrowded Drop = "crowded"      // too many others began meanwhile
	DropLate    Drop = "late"         // no chunk came for 30 s
)

func (d Drop) Error() string { return "ganglia: transfer dropped: " + string(d) }

// Dropped returns how many transfers were given up so far, by why.
func (j *Joiner) Dropped() map[Drop]int { return maps.Clone(j.dropped) }

// transfer is an object that is not whole yet.
type transfer struct {
	pieces map[int][]byte // decoded
	total  int            // how many there will be
	bytes  int            // so far
	last   int64          // when its last chunk came
}

// packet is what is read of one: a chunk, or anything else, of which only the type counts. A number is read as JSON has
// it, so that half a chunk is a bad chunk rather than bad JSON.
type packet struct {
	Type  string   `json:"type"`
	ID    string   `json:"transfer_id"`
	Total *float64 `json:"total_chunks"`
	Index *float64 `json:"chunk_index"`
	Data  *string  `json:"data"`
}

// Join takes the next packet, which came at now, and returns the object that it makes whole; a packet that is no chunk is
// an object as it is. A chunk that others are still to follow gives none, and so does one that was there before, which is
// ignored.
//
// The error is a [Drop] for a chunk that cost its transfer, and another one for what is no packet: no JSON, or more than
// 64 KiB. After any error the next packet may come.
func (j *Joiner) Join(received []byte, now int64) ([]byte, error) {
	j.Expire(now)
	if len(received) > maxReceived {
		return nil, fmt.Errorf("ganglia: a packet of %d bytes is too long", len(received))
	}
	var p packet
	var mistyped *json.UnmarshalTypeError // the other members are read all the same
	if err := json.Unmarshal(received, &p); err != nil && !errors.As(err, &mistyped) {
		return nil, fmt.Errorf("ganglia: read packet: %w", err)
	}
	if p.Type != "chunk" {
		return received, nil
	}
	if slices.Contains(j.closed, p.ID) {
		return nil, nil
	}
	if mistyped != nil {
		return nil, j.drop(p.ID, Drop(mistyped.Field))
	}
	if err := p.check(); err != "" {
		return nil, j.drop(p.ID, err)
	}
	return j.add(p.ID, int(*p.Index), int(*p.Total), *p.Data, now)
}

// check says why a chunk has no place in any transfer, and nothing of one that may have.
func (p packet) check() Drop {
	whole := func(n *float64) bool { return n != nil && *n >= 0 && *n == math.Trunc(*n) }
	switch {
	case p.ID == "" || len(p.ID) > maxID:
		return DropID
	case !whole(p.Total) || *p.Total == 0:
		return DropTotal
	case *p.Total > maxChunks:
		return DropSize
	case !whole(p.Index) || *p.Index >= *p.Total:
		return DropIndex
	case p.Data == nil:
		return DropData
	}
	return ""
}

func (j *Joiner) add(id string, index, total int, data string, now int64) ([]byte, error) {
	t := j.open[id]
	if t == nil {
		t = j.begin(id, total)
	}
	if t.total != total {
		return nil, j.drop(id, DropTotal)
	}
	if _, duplicate := t.pieces[index]; duplicate {
		return nil, nil
	}
	piece, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, j.drop(id, DropData)
	}
	if t.bytes += len(piece); t.bytes > maxTransfer {
		return nil, j.drop(id, DropSize)
	}
	t.pieces[index], t.last = piece, now
	if len(t.pieces) < total {
		return nil, nil
	}
	j.close(id)
	return t.join(), nil
}

func (j *Joiner) begin(id string, total int) *transfer {
	if len(j.open) >= maxTransfers {
		j.drop(j.quietest(), DropCrowded)
	}
	if j.open == nil {
		j.open = map[string]*transfer{}
	}
	t := &transfer{pieces: map[int][]byte{}, total: total}
	j.open[id] = t
	return t
}

// quietest is the transfer that has waited longest for a chunk.
func (j *Joiner) quietest() string {
	var found string
	for id, t := range j.open {
		if found == "" || t.last < j.open[found].last {
			found = id
		}
	}
	return found
}

func (t *transfer) join() []byte {
	object := make([]byte, 0, t.bytes)
	for i := range t.total {
		object = append(object, t.pieces[i]...)
	}
	return object
}

// Expire gives up the transfers that have waited too long at now. Join does it too; this one is for a client that gets no
// packets.
func (j *Joiner) Expire(now int64) {
	for id, t := range j.open {
		if now-t.last > maxSilence {
			j.drop(id, DropLate)
		}
	}
}

// drop gives a transfer up, whether it is open yet or not.
func (j *Joiner) drop(id string, why Drop) error {
	if j.dropped == nil {
		j.dropped = map[Drop]int{}
	}
	j.dropped[why]++
	j.close(id)
	return why
}

// close forgets a transfer but for its id: its late chunks, which reach a peer twice at times, would begin it again.
func (j *Joiner) close(id string) {
	delete(j.open, id)
	switch {
	case id == "" || len(id) > maxID:
	case len(j.closed) < maxClosed:
		j.closed = append(j.closed, id)
	default:
		j.closed[j.oldest] = id
		j.oldest = (j.oldest + 1) % maxClosed
	}
}
