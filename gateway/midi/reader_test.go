package midi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// messages are those that a reader makes of bytes, in hexadecimal.
func messages(stream []byte) []string {
	var r Reader
	var all []string
	for _, b := range stream {
		if m := r.Feed(b); m != nil {
			all = append(all, fmt.Sprintf("% x", m))
		}
	}
	return all
}

func TestReader(t *testing.T) {
	for name, x := range map[string]struct {
		stream []byte
		want   string
	}{
		"whole messages":                        {[]byte{0x90, 60, 100, 0x81, 60, 0, 0xb2, 7, 127, 0xc3, 5, 0xe4, 1, 2}, "90 3c 64|81 3c 00|b2 07 7f|c3 05|e4 01 02"},
		"running status":                        {[]byte{0x90, 60, 100, 62, 100, 60, 0, 0xc0, 1, 2}, "90 3c 64|90 3e 64|90 3c 00|c0 01|c0 02"},
		"real time in between":                  {[]byte{0xf8, 0x90, 0xfe, 60, 0xff, 100, 0xf8, 62, 0xfa, 0}, "90 3c 64|90 3e 00"},
		"sysex":                                 {[]byte{0xf0, 0x7e, 1, 2, 3, 0xf7, 0x90, 1, 2}, "90 01 02"},
		"real time in sysex":                    {[]byte{0xf0, 1, 0xf8, 2, 0xf7, 0x90, 1, 2}, "90 01 02"},
		"sysex that does not end":               {[]byte{0xf0, 1, 2, 0x90, 1, 2}, "90 01 02"},
		"sysex ends running status":             {[]byte{0x90, 1, 2, 0xf0, 1, 0xf7, 3, 4, 0x80, 3, 4}, "90 01 02|80 03 04"},
		"other system messages end it, too":     {[]byte{0x90, 1, 2, 0xf2, 5, 6, 7, 8, 0x90, 3, 4, 0xf6, 1, 2, 0xf3, 1, 0xf4, 1}, "90 01 02|90 03 04"},
		"a truncated one":                       {[]byte{0x90, 60, 0x80, 61, 0}, "80 3d 00"},
		"truncated at once":                     {[]byte{0x90, 0x91, 0x92, 1, 2, 0xe0, 0xc0, 9}, "92 01 02|c0 09"},
		"truncated by a system message":         {[]byte{0x90, 60, 0xf1, 1, 0x90, 1, 2}, "90 01 02"},
		"truncated, then by running status":     {[]byte{0x90, 1, 2, 3, 0x90, 5, 6}, "90 01 02|90 05 06"},
		"data before any status":                {[]byte{1, 2, 3, 0x90, 1, 2}, "90 01 02"},
		"pressure":                              {[]byte{0xa0, 1, 2, 0xd0, 3, 4, 0x90, 1, 2}, "a0 01 02|d0 03|d0 04|90 01 02"},
		"the end of a sysex that did not begin": {[]byte{0xf7, 1, 2, 0x90, 1, 2}, "90 01 02"},
		"nothing":                               {nil, ""},
	} {
		if got := strings.Join(messages(x.stream), "|"); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

func TestSysexOfAnyLength(t *testing.T) {
	stream := append(append([]byte{0xf0}, bytes.Repeat([]byte{0x55}, 10<<20)...), 0xf7, 0x90, 1, 2)
	if got := messages(stream); !slices.Equal(got, []string{"90 01 02"}) {
		t.Errorf("%v", got)
	}
}

func TestSignals(t *testing.T) {
	for message, want := range map[string]string{
		"\x90\x3c\x64": `midi.note_on {"channel":1,"note":60,"velocity":100,"raw":[144,60,100]}`,
		"\x9f\x3c\x00": `midi.note_off {"channel":16,"note":60,"velocity":0,"raw":[159,60,0]}`,
		"\x83\x3c\x40": `midi.note_off {"channel":4,"note":60,"velocity":64,"raw":[131,60,64]}`,
		"\xb0\x07\x7f": `midi.control_change {"channel":1,"controller":7,"value":127,"raw":[176,7,127]}`,
		"\xc9\x05":     `midi.program_change {"channel":10,"program":5,"raw":[201,5]}`,
		"\xe0\x00\x00": `midi.pitch_bend {"channel":1,"value":-8192,"raw":[224,0,0]}`,
		"\xe0\x00\x40": `midi.pitch_bend {"channel":1,"value":0,"raw":[224,0,64]}`,
		"\xe0\x7f\x7f": `midi.pitch_bend {"channel":1,"value":8191,"raw":[224,127,127]}`,
		"\xa0\x01\x02": "", "\xd0\x01": "", "": "", "\x90\x01": "", "\x90\x01\x02\x03": "", "\xf8": "", "\xf0\x01\x02": "", "\x01\x02\x03": "",
	} {
		got := ""
		for _, r := range (&Conn{name: "Keys"}).Parse([]byte(message)) {
			got += r.Type + " " + string(r.Payload)
			if r.Source != "Keys" || r.ID == "" || r.Timestamp == 0 {
				t.Errorf("%+v", r)
			}
		}
		if got != want {
			t.Errorf("% x is %s, want %s", message, got, want)
		}
	}
}

// Whatever comes, each message is whole, and neither real-time bytes nor what was before a status make a difference.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0x90, 60, 100, 0xf8, 62, 0, 0xf0, 1, 2, 0xf7, 0xc0, 1}, []byte{0x90, 1})
	f.Add([]byte{0xf2, 0xff, 0x80}, []byte{0xf0, 9})
	f.Fuzz(func(t *testing.T, stream, before []byte) {
		var r Reader
		for _, b := range stream {
			m := r.Feed(b)
			if m == nil {
				continue
			}
			if m[0] < 0x80 || m[0] >= 0xf0 || len(m) != 1+dataBytes(m[0]) || slices.ContainsFunc(m[1:], func(b byte) bool { return b >= 0x80 }) {
				t.Fatalf("% x has the message % x", stream, m)
			}
			if (b >= 0x80) || m[len(m)-1] != b {
				t.Fatalf("% x completes % x", b, m)
			}
		}
		all := messages(stream)
		plain := slices.DeleteFunc(slices.Clone(stream), func(b byte) bool { return b >= 0xf8 })
		if got := messages(plain); !slices.Equal(got, all) {
			t.Errorf("without real time % x has %v, and not %v", stream, got, all)
		}
		if len(plain) > 0 && plain[0] >= 0x80 {
			if got := messages(append(slices.Clone(before), plain...)); !slices.Equal(got, append(messages(before), all...)) {
				t.Errorf("behind % x, % x has %v", before, plain, got)
			}
		}
	})
}
