package webhook

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"vela/gateway/feed"
)

// An independent receiver, in another language, takes what we sign, and refuses it with another secret.
func TestAnotherReceiver(t *testing.T) {
	for name, x := range map[string]struct {
		secret string
		want   []string
	}{
		"with our secret": {secret, []string{"sig-1 again please", "sig-1 " + string(click("sig-1").Text), "sig-2 " + string(click("sig-2").Text)}},
		"with another":    {"whsec_" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", []string{"refused", "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			node := exec.CommandContext(ctx, "node", "testdata/receiver.mjs")
			node.Env = append(os.Environ(), "SECRET="+x.secret)
			node.Stderr = os.Stderr
			in, err := node.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := node.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := node.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			w, err := New(Config{URL: "http://127.0.0.1:" + lines.Text() + "/", Secret: secret})
			if err != nil {
				t.Fatal(err)
			}
			var f feed.Feed
			run, stop := context.WithCancel(ctx)
			ready, over := make(chan struct{}), make(chan struct{})
			go func() { defer close(over); w.Run(run, &f, func() { close(ready) }) }()
			<-ready
			f.Offer(click("sig-1"))
			f.Offer(click("sig-2"))
			for _, want := range x.want {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("the receiver says %q, want %q", lines.Text(), want)
				}
			}
			stop()
			<-over
			_ = in.Close()
			for lines.Scan() { // the last words of a receiver that refuses
			}
			if err := node.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
