package auth_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"vela/gateway/auth"
)

func TestGuessesAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th auth.Throttle
		here := netip.MustParseAddr("192.0.2.1")
		tries := func() (n int) {
			for ; th.Wait(here) == 0; n++ {
				th.Failed(here)
			}
			return n
		}
		if n := tries(); n != 10 {
			t.Errorf("%d tries at once, want 10", n)
		}
		if w := th.Wait(netip.MustParseAddr("::ffff:192.0.2.1")); w <= 0 || w > 6*time.Second {
			t.Errorf("the same address in IPv6 waits %s", w)
		}
		if w := th.Wait(netip.MustParseAddr("192.0.2.2")); w != 0 {
			t.Errorf("a neighbour waits %s", w)
		}
		time.Sleep(th.Wait(here))
		if n := tries(); n != 1 {
			t.Errorf("%d tries after the wait, want 1", n)
		}
		time.Sleep(time.Hour)
		if n := tries(); n != 10 {
			t.Errorf("%d tries after an hour, want 10", n)
		}
	})
}

func TestANetworkCountsAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th auth.Throttle
		addr := netip.MustParseAddr("2001:db8::1")
		for range 10 {
			th.Failed(addr)
			addr = addr.Next()
		}
		if th.Wait(addr) == 0 {
			t.Error("the next address of the network need not wait")
		}
		if th.Wait(netip.MustParseAddr("2001:db8:0:1::1")) != 0 {
			t.Error("another network has to")
		}
	})
}

func TestAddressesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th auth.Throttle
		addr := netip.MustParseAddr("198.18.0.0")
		for range 5000 {
			th.Failed(addr)
			addr = addr.Next()
		}
		if n := th.Addresses(); n > 4097 {
			t.Errorf("%d addresses are remembered", n)
		}
		if th.Wait(addr) == 0 {
			t.Error("in a crowd, newcomers are not counted together")
		}
		time.Sleep(2 * time.Hour)
		if th.Wait(addr) != 0 {
			t.Error("the crowd is not forgotten")
		}
	})
}
