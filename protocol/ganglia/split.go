package ganglia

import (
	"encoding/base64"
	"fmt"
	"iter"
	"strconv"
)

// MaxPacket is how long a packet of the channel may be, in bytes of JSON: the 16 KiB that a data channel carries, and
// some room below them.
const MaxPacket = 14 << 10

// Split cuts an object into the packets that carry it, in their order. One of at most [MaxPacket] bytes is a packet as it
// is. A longer one goes in chunks, each of at most as many bytes, its JSON and all; transfer is a UUID that no other
// object has.
//
//	{"type":"chunk","transfer_id":string,"chunk_index":from 0,"total_chunks":number,"data":base64}
//
// Readers in the field decode the pieces one by one, or join them first and then decode. Both come out right, because the
// base64 is cut at multiples of four characters.
//
// The packets may be kept: none is written to again.
func Split(object []byte, transfer [16]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(object) <= MaxPacket {
			yield(object)
			return
		}
		id := fmt.Sprintf("%x-%x-%x-%x-%x", transfer[:4], transfer[4:6], transfer[6:8], transfer[8:10], transfer[10:])
		size, total := pieces(len(object), id)
		for i := range total {
			piece := object[i*size : min((i+1)*size, len(object))]
			packet := make([]byte, 0, MaxPacket)
			packet = append(packet, opening(id, i, total)...)
			packet = base64.StdEncoding.AppendEncode(packet, piece)
			if !yield(append(packet, `"}`...)) {
				return
			}
		}
	}
}

// opening is a chunk as far as its data.
func opening(id string, index, total int) string {
	return fmt.Sprintf(`{"type":"chunk","transfer_id":"%s","chunk_index":%d,"total_chunks":%d,"data":"`, id, index, total)
}

// pieces says how many bytes of an object of n bytes go into each chunk, and how many chunks there are. The number of
// chunks is written in each of them, so that its own digits count: more of them leave less room.
func pieces(n int, id string) (size, total int) {
	for digits, most := 1, 10; ; digits, most = digits+1, most*10 {
		room := MaxPacket - len(opening(id, most-1, most-1)) - len(`"}`)
		size = room / 4 * 3
		total = (n + size - 1) / size
		if len(strconv.Itoa(total)) <= digits {
			return size, total
		}
	}
}
