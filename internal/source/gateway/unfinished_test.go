package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// endless answers with a line, or with an event, that does not end, and counts its bytes.
func endless(chunk string, sent *atomic.Int64) turn {
	return func(w http.ResponseWriter, r *http.Request) {
		write(w, hello)
		for r.Context().Err() == nil {
			n, err := w.Write([]byte(chunk))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}
}

// TestUnfinishedEventsAreBounded: what has come of an event that does not end counts towards the
// memory of the watch, and is no more than that allows.
func TestUnfinishedEventsAreBounded(t *testing.T) {
	const most = 2 << 20
	for name, chunk := range map[string]string{
		"a line":   strings.Repeat("x", 8<<10),
		"an event": "data: " + strings.Repeat("x", 8<<10) + "\n",
		"an id":    "id: " + strings.Repeat("x", 8<<10) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent atomic.Int64
				_, u, end := serve(t, Config{}, endless(chunk, &sent))
				defer end()
				s, err := u.Source("w", nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				sink, ctx := streamtest.NewBoundedSink(t.Context(), most)
				err = s.Watch(ctx, stream.Resume{}, sink)
				if !errors.Is(err, streamtest.ErrFull) && !errors.Is(err, stream.ErrInvalid) {
					t.Errorf("error %v", err)
				}
				if !errors.Is(context.Cause(ctx), streamtest.ErrFull) {
					t.Errorf("the watch ended for %v, want that it does not fit", context.Cause(ctx))
				}
				if n := sent.Load(); n > most {
					t.Errorf("%d bytes were read, %d may be held", n, most)
				}
				if held, peak := sink.Held(); peak < most/4 || held > 2*most {
					t.Errorf("%d bytes are held, %d were at most", held, peak)
				}
				t.Logf(" scripted | gateway | %s that does not end | the watch does not fit into its memory |", name)
			})
		})
	}
}
