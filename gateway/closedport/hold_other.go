//go:build !linux

package closedport

import "net"

// hold only finds a port that is free now: on this system one that is held cannot be listened at.
func hold() (address string, free func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	return l.Addr().String(), func() {}, l.Close()
}
