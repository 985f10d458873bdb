package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"vela/protocol"
)

// The two tables of codes, as the contract has them: a client may hold a copy, so that none changes its meaning.
const (
	errorCodesThereAre = `agent_failed true
agent_timeout true
agent_unavailable true
audio_too_long false
internal true
invalid_json false
invalid_message false
mocked_turn_in_flight true
rate_limited true
session_gone false
session_limit true
speech_failed true
speech_unavailable true
turn_in_flight true
turn_interrupted true
unsupported false`

	closeCodesThereAre = `1001 going_away true
1002 protocol_error false
1007 invalid_text false
1008 policy_violation false
1009 too_big false
1011 internal true
4001 authentication false
4002 taken_over false
4003 slow_consumer true
4004 session_limit false
4005 idle false
4006 session_gone false`
)

func TestErrorCodes(t *testing.T) {
	there := map[string]bool{}
	for _, c := range protocol.Codes() {
		there[fmt.Sprintf("%s %t", c.Code, c.Retryable)] = true
		if c.Code.Retryable() != c.Retryable || !strings.HasSuffix(c.Meaning, ".") {
			t.Errorf("%+v", c)
		}
	}
	sameRows(t, there, errorCodesThereAre)
	if protocol.Code("of another day").Retryable() {
		t.Error("a code that is not in the table is retryable")
	}
}

func TestCloseCodes(t *testing.T) {
	there := map[string]bool{}
	for _, c := range protocol.Closes() {
		there[fmt.Sprintf("%d %s %t", c.Code, c.Name, c.Reconnect)] = true
		if c.Code.Name() != c.Name || !strings.HasSuffix(c.Meaning, ".") {
			t.Errorf("%+v", c)
		}
	}
	sameRows(t, there, closeCodesThereAre)
	if name := protocol.CloseCode(4999).Name(); name != "" {
		t.Errorf("a code that is not in the table is called %s", name)
	}
}

func sameRows(t *testing.T, there map[string]bool, want string) {
	t.Helper()
	rows := strings.Split(want, "\n")
	for _, row := range rows {
		if !there[row] {
			t.Errorf("%s is not in the table", row)
		}
	}
	if len(there) != len(rows) {
		t.Errorf("%d rows, want %d", len(there), len(rows))
	}
}
