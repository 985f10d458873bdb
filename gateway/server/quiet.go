package server

import (
	"net"
	"sync/atomic"
)

// quiet is a connection on which nothing follows a close frame. The library answers every close frame that it reads
// with one of its own, also when it has sent one already, which RFC 6455 section 5.5.1 forbids and browsers report.
type quiet struct {
	net.Conn
	closing atomic.Bool // a close frame is about to be written: only control frames are from now on
	closed  atomic.Bool // it has been
	told    func()      // is called when it is out; nil: nobody asks. Set before closing
}

// closeFrame is the first byte of a close frame: final, opcode 8 (RFC 6455 section 5.2).
const closeFrame = 0x88

// Write lets one close frame out and drops what comes after it.
func (q *quiet) Write(p []byte) (int, error) {
	if q.closing.Load() && len(p) > 0 {
		if q.closed.Load() {
			return len(p), nil
		}
		if p[0] == closeFrame {
			q.closed.Store(true)
			if q.told != nil {
				defer q.told()
			}
		}
	}
	return q.Conn.Write(p)
}
