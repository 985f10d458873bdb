package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vela/gateway/auth"
	"vela/gateway/cert"
)

// TLS says with which certificate to listen. The zero value is plain HTTP.
type TLS struct {
	Self      bool   // one that this machine makes for itself, and keeps in Folder
	Folder    string // default: vela in the user's configuration folder
	Cert, Key string // PEM files of one that the operator brings
}

func (t TLS) on() bool { return t.Self || t.Cert != "" }

// mayListen refuses to listen where others on the network could reach a gateway that does not ask who they are, or that
// they could only talk to in the clear.
func mayListen(addr string, keys, tls bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("gateway: %q is no address to listen on: write host:port, such as %s", addr, DefaultAddr)
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	var missing []string
	if !keys {
		missing = append(missing, "--auth keys with a server key in VELA_KEYS, which vela key makes")
	}
	if !tls {
		missing = append(missing, "--tls self, or --tls CERT KEY")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("gateway: refusing to listen on %s: others can reach it. Add %s; or listen on 127.0.0.1, "+
		"which only this machine can reach", addr, strings.Join(missing, ", and "))
}

func newAuthority(keys []auth.Key) (*auth.Authority, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return auth.New(keys)
}

func (t TLS) certificate(addr string) (*cert.Certificate, error) {
	switch {
	case t.Self && t.Cert != "":
		return nil, errors.New("gateway: there are two certificates to listen with: choose one")
	case t.Cert != "":
		return cert.Load(t.Cert, t.Key)
	case !t.Self:
		return nil, nil
	}
	folder := t.Folder
	if folder == "" {
		config, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("gateway: there is no folder to keep a certificate in: %w; give one with --data", err)
		}
		folder = filepath.Join(config, "vela")
	}
	return cert.Self(folder, ownHosts(addr))
}

// ownHosts are the names and addresses that a gateway which listens on addr may be reached by.
func ownHosts(addr string) []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	add := func(h string) {
		if h != "" && !strings.ContainsFunc(h, func(r rune) bool { return r <= ' ' || r > '~' }) {
			hosts = append(hosts, h)
		}
	}
	if name, err := os.Hostname(); err == nil {
		name = strings.ToLower(name)
		add(name)
		if !strings.Contains(name, ".") {
			add(name + ".local") // as it is announced in the local network
		}
	}
	if host, _, _ := net.SplitHostPort(addr); net.ParseIP(host) == nil {
		add(strings.ToLower(host))
	}
	for _, ip := range Addresses(addr) {
		add(ip.String())
	}
	return hosts
}

// Addresses are those of this machine at which others in its network reach a gateway that listens on addr: none for a
// loopback address. The networks that containers and virtual machines have among themselves are left out, unless there is no
// other.
func Addresses(addr string) []netip.Addr {
	host, _, _ := net.SplitHostPort(addr)
	listen, err := netip.ParseAddr(host)
	switch {
	case err == nil && listen.IsLoopback() || host == "localhost":
		return nil
	case err == nil && !listen.IsUnspecified():
		return []netip.Addr{listen.Unmap()}
	case err != nil && host != "":
		return nil // a name
	}
	interfaces, _ := net.Interfaces()
	var inside, outside []netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		list := &outside
		if virtual(i.Name) {
			list = &inside
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			ip := p.Addr().Unmap()
			if err == nil && ip.IsGlobalUnicast() && (ip.Is4() || !listen.Is4()) {
				*list = append(*list, ip)
			}
		}
	}
	if len(outside) == 0 {
		return inside
	}
	return outside
}

func virtual(name string) bool {
	for _, p := range []string{"docker", "br-", "veth", "virbr", "cni", "vmnet", "vboxnet", "podman", "lxc"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func (g *Gateway) tlsConfig() *tls.Config {
	if g.cert == nil {
		return nil
	}
	return g.cert.Config()
}

func (g *Gateway) ownName(host string) bool { return g.cert != nil && g.cert.Names(host) }

// URL is where the page is when the gateway listens on addr; a browser on this machine can open it.
func (g *Gateway) URL(addr net.Addr) string {
	scheme, host := "http", addr.String()
	if g.cert != nil {
		scheme = "https"
	}
	if ap, err := netip.ParseAddrPort(host); err == nil && ap.Addr().IsUnspecified() {
		host = fmt.Sprintf("localhost:%d", ap.Port())
	}
	return scheme + "://" + host
}

// Fingerprint is that of the certificate which the gateway listens with, as browsers show it; empty without one.
func (g *Gateway) Fingerprint() string {
	if g.cert == nil {
		return ""
	}
	return g.cert.Fingerprint()
}

// Token makes a token with the first server key.
func (g *Gateway) Token(r auth.Rights) (token string, expires time.Time, err error) {
	if g.authority == nil {
		return "", time.Time{}, errors.New("gateway: there is no server key to make a token with: start with --auth keys")
	}
	return g.authority.Issue(g.cfg.Keys[0].String(), r)
}
