package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"rsc.io/qr"

	"vela/gateway"
	"vela/gateway/auth"
)

// invited is what the token of an invitation allows: a working day for a handful of phones.
var invited = auth.Rights{TTL: 8 * time.Hour, Sessions: 8, Minutes: 8 * 60}

// invite prints links that sign a phone in. The token stands behind the #, which browsers send to nobody.
func (c *serveCmd) invite(w io.Writer, g *gateway.Gateway, listens net.Addr) error {
	token, expires, err := g.Token(invited)
	if err != nil {
		return err
	}
	page := "/"
	if g.HasRooms() {
		page = "/phone" // which has all that the other one has, and the sound of a telephone
	}
	links := links(g.URL(listens), gateway.Addresses(c.Addr), page+"#token="+token)
	fmt.Fprintf(w, "\nOn a phone in this network, open or scan what follows. It is good until %s; whoever has it can talk here.\n"+
		"The browser will not know the certificate: go on if it shows the fingerprint above.\n", expires.Local().Format("15:04"))
	for i, link := range links {
		fmt.Fprintf(w, "\n  %s\n", link)
		if c.Invite != "qr" || i >= 3 { // more would push the first out of sight
			continue
		}
		if err := drawQR(w, link); err != nil {
			return err
		}
	}
	return nil
}

// links are the address of a page at each of the addresses; at the one that we have by ourselves if there are none.
func links(own string, at []netip.Addr, page string) []string {
	if len(at) == 0 {
		return []string{own + page}
	}
	scheme, rest, _ := strings.Cut(own, "://")
	_, port, _ := net.SplitHostPort(rest)
	var all []string
	for _, a := range at {
		all = append(all, scheme+"://"+net.JoinHostPort(a.String(), port)+page)
	}
	return all
}

// drawQR draws text as a code of half blocks, two rows of modules a line: black on white whatever the terminal's own
// colours are, with the margin of four that readers need.
func drawQR(w io.Writer, text string) error {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return fmt.Errorf("draw a QR code: %w", err)
	}
	const margin = 4
	blocks := map[[2]bool]string{{false, false}: " ", {true, false}: "▀", {false, true}: "▄", {true, true}: "█"}
	var b strings.Builder
	for y := -margin; y < code.Size+margin; y += 2 {
		b.WriteString("\x1b[38;5;16;48;5;231m")
		for x := -margin; x < code.Size+margin; x++ {
			b.WriteString(blocks[[2]bool{code.Black(x, y), code.Black(x, y+1)}])
		}
		b.WriteString("\x1b[0m\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}
