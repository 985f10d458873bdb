//go:build cgo && opus

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"
)

const (
	liveKitKey    = "benchkey"
	liveKitSecret = "bench-secret-bench-secret-bench-secret-32"
	liveKitWait   = 20 * time.Second
)

// liveKit is the real server, on loopback.
type liveKit struct{ cmd *exec.Cmd }

// startLiveKit starts it, tells the gateway by the environment where it is, and waits until it answers.
func startLiveKit(program string) (*liveKit, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port, udp := l.Addr().(*net.TCPAddr).Port, u.LocalAddr().(*net.UDPAddr).Port
	_, _ = l.Close(), u.Close()
	server := &liveKit{exec.Command(program, "--config-body", fmt.Sprintf(`{"port": %d, "bind_addresses": ["127.0.0.1"],
		"rtc": {"udp_port": %d, "tcp_port": 0, "use_external_ip": false, "node_ip": "127.0.0.1", "enable_loopback_candidate": true,
			"interfaces": {"includes": ["lo"]}, "stun_servers": ["127.0.0.1:3478"]},
		"keys": {%q: %q}, "logging": {"level": "error"}}`, port, udp, liveKitKey, liveKitSecret))}
	if err := server.cmd.Start(); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"LIVEKIT_URL": fmt.Sprintf("ws://127.0.0.1:%d", port), "LIVEKIT_API_KEY": liveKitKey, "LIVEKIT_API_SECRET": liveKitSecret,
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), liveKitWait)
	defer cancel()
	for ctx.Err() == nil {
		if resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d", port)); err == nil {
			resp.Body.Close()
			return server, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	server.stop()
	return nil, fmt.Errorf("the LiveKit server does not answer: is %s there? make bin/livekit-server builds it", program)
}

func (l *liveKit) stop() {
	_ = l.cmd.Process.Kill() // it would wait for its rooms
	_ = l.cmd.Wait()
}
