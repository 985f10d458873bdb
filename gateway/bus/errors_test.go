package bus

import (
	"errors"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

func TestWhatARefusalMeans(t *testing.T) {
	for _, x := range []struct {
		refusal *server.ApiError
		want    error
	}{
		{server.NewJSStreamStoreFailedError(server.ErrMaxBytes), ErrFull},
		{server.NewJSStreamStoreFailedError(server.ErrStoreClosed), ErrUnavailable}, // the server stops
		{server.NewJSInsufficientResourcesError(), ErrFull},
		{server.NewJSStreamWrongLastSequenceError(7), ErrConflict},
	} {
		e := &apiError{Code: int(x.refusal.ErrCode), Description: x.refusal.Description}
		if err := e.err(); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.refusal, err, x.want)
		}
	}
	var none *apiError
	if err := none.err(); err != nil {
		t.Error(err)
	}
}
