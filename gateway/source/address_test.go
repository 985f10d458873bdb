package source

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	for address, says := range map[string]string{
		"http://localhost:1234": "", "https://example.org/events?x=1": "", "ws://192.168.1.5:9100": "", "wss://10.0.0.1": "", "http://[::1]:80/": "", "http://[fd12::1]/": "",
		"": "begins with", "localhost:1234": "begins with", "file:///etc/passwd": "begins with", "gopher://x": "begins with", "http://": "no host", "http://:80": "no host",
		"http://user:pass@example.org": "a user or a password", "http://ex ample": "no address", "http://" + strings.Repeat("a", 3000): "at most",
		"http://169.254.169.254/latest": "not for sources", "http://[fe80::1%25eth0]/": "not for sources", "http://0.0.0.0:80": "not for sources", "ws://[::ffff:169.254.169.254]": "not for sources",
	} {
		err := CheckURL(address)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: %v, want %q", address, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "pass@") {
			t.Errorf("%q repeats the password", err)
		}
	}
}

func TestForbiddenAddresses(t *testing.T) {
	for address, forbidden := range map[string]bool{
		"127.0.0.1": false, "127.8.8.8": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.0.1": false, "100.64.0.1": false, "8.8.8.8": false, "169.253.255.255": false, "169.255.0.0": false,
		"::1": false, "fd00::1": false, "2001:4860:4860::8888": false, "::ffff:127.0.0.1": false, "64:ff9b::808:808": false, "2002:0808:0808::1": false,
		"169.254.0.0": true, "169.254.169.254": true, "169.254.255.255": true, "100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true,
		"0.0.0.0": true, "0.1.2.3": true, "224.0.0.1": true, "239.255.255.250": true, "240.0.0.1": true, "255.255.255.255": true,
		"::": true, "fe80::1": true, "fe80::1%eth0": true, "febf::1": true, "fec0::1": true, "ff02::1": true, "fd00:ec2::254": true, "fd20:ce::254": true,
		"::ffff:169.254.169.254": true, "::169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b:1::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true,
	} {
		if err := CheckIP(netip.MustParseAddr(address)); errors.Is(err, ErrForbidden) != forbidden {
			t.Errorf("%s: %v", address, err)
		}
		err := control(t.Context(), "tcp4", net.JoinHostPort(address, "80"), nil)
		if errors.Is(err, ErrForbidden) != forbidden {
			t.Errorf("a connection to %s: %v", address, err)
		}
	}
	for _, x := range [][2]string{{"udp4", "127.0.0.1:80"}, {"unix", "/tmp/socket"}, {"tcp4", "nonsense"}} {
		if err := control(t.Context(), x[0], x[1], nil); !errors.Is(err, ErrForbidden) {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// What counts is where a connection really goes: a redirect does not lead around that, nor does a name.
func TestTheDialerLooksAtEveryConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}
	}))
	defer server.Close()
	client := http.Client{Transport: &http.Transport{DialContext: Dialer(5 * time.Second).DialContext}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(server.URL + "/here")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp, err := client.Get(server.URL + "/away"); !errors.Is(err, ErrForbidden) {
		if err == nil {
			_ = resp.Body.Close()
		}
		t.Errorf("a redirect to the metadata service: %v", err)
	}
}
