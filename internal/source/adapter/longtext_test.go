package adapter

import (
	"errors"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// TestErrorsQuoteLittle: an error quotes the beginning of what the upstream sent.
func TestErrorsQuoteLittle(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	for name, e := range map[string]Event{
		"key":      {Type: Upsert, Resource: stream.Resource{Key: long, Revision: 1, Value: []byte("1")}},
		"position": {Type: Reset, Position: long + "@e-1"},
		"watch":    {Type: Reset, Position: "other@" + long[:20] + "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(ReaderConfig{Sink: streamtest.NewSinkRecorder(stream.Resume{}, nil), Watch: "w", Where: "here"}, stream.Position{})
			err := r.Receive(e, nil)
			if !errors.Is(err, stream.ErrInvalid) || len(err.Error()) > 300 {
				t.Errorf("error %.200v: want one of at most 300 bytes that is ErrInvalid", err)
			}
		})
	}
}
