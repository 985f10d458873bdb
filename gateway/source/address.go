package source

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// CheckURL says what is wrong with an address that a person gives. Where its name leads is checked by [Dialer], when it
// is connected to.
func CheckURL(address string) error {
	if len(address) > maxURL {
		return Mistake(fmt.Sprintf("An address has at most %d bytes.", maxURL))
	}
	u, err := url.Parse(address)
	if err != nil {
		return Mistake("That is no address.") // url.Error repeats it, and so a key that is in it
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return Mistake("An address begins with http://, https://, ws:// or wss://.")
	}
	switch {
	case u.Hostname() == "":
		return Mistake("The address names no host.")
	case u.User != nil:
		return Mistake("The address has a user or a password in it. Leave that out, and set the key by itself.")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return CheckIP(ip)
	}
	return nil
}

// ErrForbidden comes from an address that no source may have.
var ErrForbidden = Mistake("This address is not for sources: it is of this link alone, of a cloud's metadata service, or of no single host.")

// What lies behind these is not for a program that anybody can send there. A person's own machine and network are, since
// agents run there.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),     // of the link (RFC 3927); the metadata service of most clouds
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // platform services of Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // metadata of Oracle Cloud
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("240.0.0.0/4"),        // reserved, and broadcast
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("fe80::/10"),        // of the link (RFC 4291)
	netip.MustParsePrefix("fec0::/10"),        // of the site, long given up (RFC 3879)
	netip.MustParsePrefix("fd00:ec2::/32"),    // metadata of AWS
	netip.MustParsePrefix("fd20:ce::254/128"), // metadata of Google Cloud
	netip.MustParsePrefix("ff00::/8"),         // multicast
}

// Addresses of version 6 that stand for one of version 4.
var (
	mapped4  = netip.MustParsePrefix("::/96")          // IPv4-compatible (RFC 4291)
	nat64    = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	nat64own = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	sixToOne = netip.MustParsePrefix("2002::/16")      // 6to4 (RFC 3056)
)

// CheckIP is [ErrForbidden] for an address that no source may have.
func CheckIP(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	for _, p := range forbidden {
		if p.Contains(ip) {
			return ErrForbidden
		}
	}
	if ip.Is4() || ip.IsLoopback() {
		return nil
	}
	b := ip.As16()
	switch {
	case mapped4.Contains(ip), nat64.Contains(ip), nat64own.Contains(ip):
		return CheckIP(netip.AddrFrom4([4]byte(b[12:])))
	case sixToOne.Contains(ip):
		return CheckIP(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return nil
}

// Dialer connects to sources. It looks at the very address that a connection is about to be made to, and so at what a
// name leads to now, at every redirect, and at every new connection.
func Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, ControlContext: control}
}

func control(_ context.Context, network, address string, _ syscall.RawConn) error {
	switch network {
	case "tcp4", "tcp6":
	default:
		return ErrForbidden
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrForbidden
	}
	return CheckIP(at.Addr())
}
