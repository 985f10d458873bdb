package script

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// textFrame is a text message in one WebSocket frame (RFC 6455 section 5.2). Its mask is all zeros, so what is sent
// stands in it as it is.
func textFrame(text string) []byte {
	const fin, opText, masked = 0x80, 0x1, 0x80
	b := []byte{fin | opText}
	switch n := len(text); {
	case n < 126:
		b = append(b, masked|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), text...)
}

// wireBytes reads hexadecimal digits in groups, and texts in single quotes which stand for themselves.
func wireBytes(s string) ([]byte, error) {
	var out []byte
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		if quoted, ok := strings.CutPrefix(s, "'"); ok {
			text, after, closed := strings.Cut(quoted, "'")
			if !closed {
				return nil, fmt.Errorf("a text has no end: close it with another '")
			}
			out, s = append(out, text...), after
			continue
		}
		group := s
		if end := strings.IndexAny(s, " '"); end >= 0 {
			group = s[:end]
		}
		b, err := hex.DecodeString(group)
		if err != nil {
			return nil, fmt.Errorf("%q is not hexadecimal: write bytes like c1 80, and texts in single quotes", group)
		}
		out, s = append(out, b...), s[len(group):]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no bytes follow >frame: write them like c1 80, and texts in single quotes")
	}
	return out, nil
}
