package sherpa

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// What is read of a model is bounded, in bytes and in fields; the rest is passed over.
const (
	maxMetadata = 1 << 20
	maxFields   = 1 << 16
)

var errNoModelFile = errors.New("it is no ONNX model")

// metadata is what an ONNX model says of itself: the metadata_props, field 14 of ModelProto in onnx.proto. The library ends the
// whole process over a model of another kind than it expects, or one that was cut off, so this is looked at first.
func metadata(name string) (map[string]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMetadata(f)
}

func readMetadata(r io.ReadSeeker) (map[string]string, error) {
	const props = 14
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	p := proto{r: r, b: bufio.NewReaderSize(r, 512), size: size}
	if err := p.seek(0); err != nil {
		return nil, err
	}
	found, total := map[string]string{}, int64(0)
	for fields := range maxFields {
		field, n, err := p.field()
		switch {
		case errors.Is(err, io.EOF) && fields > 0:
			return found, nil
		case err != nil:
			return nil, errNoModelFile
		case field != props:
			if err := p.skip(n); err != nil {
				return nil, errNoModelFile
			}
			continue
		}
		if total += n; total > maxMetadata {
			return nil, errNoModelFile
		}
		entry := make([]byte, n)
		if _, err := io.ReadFull(p.b, entry); err != nil {
			return nil, errNoModelFile
		}
		p.at += n
		key, value, ok := pair(entry)
		if !ok {
			return nil, errNoModelFile
		}
		found[key] = value
	}
	return nil, errNoModelFile
}

// proto reads the outermost fields of a protocol buffer, and passes over their contents without reading them.
type proto struct {
	r    io.ReadSeeker
	b    *bufio.Reader
	at   int64
	size int64
}

func (p *proto) seek(at int64) error {
	if at < 0 || at > p.size {
		return errNoModelFile
	}
	if _, err := p.r.Seek(at, io.SeekStart); err != nil {
		return err
	}
	p.b.Reset(p.r)
	p.at = at
	return nil
}

func (p *proto) skip(n int64) error {
	if n < 0 || n > p.size-p.at {
		return errNoModelFile
	}
	if n <= int64(p.b.Buffered()) {
		_, err := p.b.Discard(int(n))
		p.at += n
		return err
	}
	return p.seek(p.at + n)
}

// ReadByte implements [io.ByteReader].
func (p *proto) ReadByte() (byte, error) {
	c, err := p.b.ReadByte()
	if err == nil {
		p.at++
	}
	return c, err
}

// field is the number of the next field, and how many bytes it has. io.EOF is the end of the message.
func (p *proto) field() (number, n int64, err error) {
	tag, err := binary.ReadUvarint(p)
	if err != nil {
		return 0, 0, err
	}
	switch tag & 7 {
	case 0:
		if _, err := binary.ReadUvarint(p); err != nil {
			return 0, 0, errNoModelFile
		}
		return int64(tag >> 3), 0, nil
	case 1:
		return int64(tag >> 3), 8, nil
	case 2:
		n, err := binary.ReadUvarint(p)
		if err != nil || n > uint64(p.size) {
			return 0, 0, errNoModelFile
		}
		return int64(tag >> 3), int64(n), nil
	case 5:
		return int64(tag >> 3), 4, nil
	}
	return 0, 0, errNoModelFile
}

// pair is a StringStringEntryProto: the key is field 1, the value field 2.
func pair(b []byte) (key, value string, ok bool) {
	for len(b) > 0 {
		tag, k := binary.Uvarint(b)
		if k <= 0 || tag&7 != 2 {
			return "", "", false
		}
		n, m := binary.Uvarint(b[k:])
		if m <= 0 || n > uint64(len(b)-k-m) {
			return "", "", false
		}
		text := string(b[k+m : k+m+int(n)])
		b = b[k+m+int(n):]
		switch tag >> 3 {
		case 1:
			key = text
		case 2:
			value = text
		}
	}
	return key, value, true
}
