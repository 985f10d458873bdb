package stream

import (
	"bytes"
	"io"
)

// liner cuts a reader into lines, in a buffer that grows to the longest one.
type liner struct {
	src io.Reader
	cr  bool // a carriage return ends a line too, alone or before a line feed

	buf        []byte
	start, end int // of what was read and not yet returned
	scanned    int // no line ends in buf[start:scanned]
	skipLF     bool
	err        error // of src, for when buf is used up
}

// next returns the next line without its end; it is valid until the following call. With io.EOF comes what stands after
// the last line end.
func (l *liner) next() ([]byte, error) {
	for {
		if l.skipLF && l.start < l.end {
			l.skipLF = false
			if l.buf[l.start] == '\n' {
				l.start++
			}
			l.scanned = l.start
		}
		if at := l.lineEnd(); at >= 0 {
			line := l.buf[l.start:at]
			l.skipLF = l.buf[at] == '\r'
			l.start = at + 1
			l.scanned = l.start
			if len(line) > maxLine {
				return nil, ErrLongLine
			}
			return line, nil
		}
		l.scanned = l.end
		if l.end-l.start > maxLine {
			return nil, ErrLongLine
		}
		if l.err != nil {
			rest := l.buf[l.start:l.end]
			l.start, l.scanned = l.end, l.end
			return rest, l.err
		}
		l.fill()
	}
}

// lineEnd finds the first line end that has been read, or -1.
func (l *liner) lineEnd() int {
	unseen := l.buf[l.scanned:l.end]
	lf := bytes.IndexByte(unseen, '\n')
	if l.cr {
		before := unseen
		if lf >= 0 {
			before = unseen[:lf]
		}
		if cr := bytes.IndexByte(before, '\r'); cr >= 0 {
			return l.scanned + cr
		}
	}
	if lf < 0 {
		return -1
	}
	return l.scanned + lf
}

// fill reads once, behind what is there.
func (l *liner) fill() {
	if l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start, l.scanned = 0, l.end
	}
	if l.end == len(l.buf) {
		l.buf = append(l.buf, make([]byte, max(4096, len(l.buf)))...)
	}
	for range 100 {
		n, err := l.src.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}
