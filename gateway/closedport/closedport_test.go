package closedport

import (
	"net"
	"runtime"
	"testing"
)

func TestNobodyListensBeforeTheTestDoes(t *testing.T) {
	address := New(t)
	for range 3 {
		if _, err := net.Dial("tcp", address); err == nil {
			t.Error("somebody listens")
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		_ = l.Close()
	}
}

// Linux gives who asks for any port one of some 14,000.
func TestNobodyElseGetsThePort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a port is not held")
	}
	address := New(t)
	for range 50_000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().String() == address {
			t.Fatal("another listener has it")
		}
		_ = l.Close()
	}
}
