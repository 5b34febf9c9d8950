package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// TestUpstreamTextIsBounded: whatever an upstream writes into an error or a reason, what is
// kept, logged and shown of it is short and valid UTF-8.
func TestUpstreamTextIsBounded(t *testing.T) {
	long := "long" + strings.Repeat("é", 32<<10) + "\xff"
	errLong := errors.New(long)
	says := func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
		if err := sink.Status(stream.Stale, long); err != nil {
			return err
		}
		return stayFor(time.Second, errLong)(ctx, stream.Resume{}, sink)
	}
	var logged bytes.Buffer
	bubble(t, Config{Logger: slog.New(slog.NewTextHandler(&logged, nil)), BehindTimeout: time.Minute}, []stream.SourceFunc{
		says, // before the first snapshot
		snapshotThen("e", 5, []log.Change{upsert("a", 1)}, says),
		fail(fmt.Errorf("%w: %w", stream.ErrOrder, errLong)),
		snapshotThen("e", 4, []log.Change{upsert(long, 1)}, stayFor(time.Second, nil)), // behind, with a long key
		snapshotThen("e", 6, []log.Change{upsert("a", 1), upsert(long, 1)}, stayFor(time.Second, nil)),
		snapshotThen("e", 5, []log.Change{upsert("a", 1)}, says),
	}, func(t *testing.T, w *Watch, _ *script) {
		const most = 1200 // a text, and the words before it
		wantShort := func(what, text string) {
			t.Helper()
			if len(text) > most || !utf8.ValidString(text) {
				t.Errorf("%s: %d bytes, valid UTF-8 %t", what, len(text), utf8.ValidString(text))
			}
		}
		seen := false
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			status, upstream := w.Status(), w.Upstream()
			wantShort("status", status.Full())
			wantShort("reason", status.Reason)
			wantShort("last error", upstream.LastError)
			seen = seen || strings.Contains(status.Full(), "longéé") && strings.HasSuffix(status.Full(), "é…")
		}
		for _, i := range w.Incidents() {
			wantShort("incident", i.Detail)
		}
		if !seen {
			t.Error("the beginning of the text was never shown")
		}
	})
	if n := logged.Len(); n > 100*1200 {
		t.Errorf("%d bytes were logged", n)
	}
	for line := range strings.SplitSeq(logged.String(), "\n") {
		if len(line) > 3000 {
			t.Errorf("a line of %d bytes was logged: %.100s", len(line), line)
		}
	}
}
