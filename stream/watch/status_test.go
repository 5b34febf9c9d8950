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

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// errSecret is what a source says when its upstream is gone: an address, a file
// and a bucket.
var errSecret = errors.New("dial tcp 10.9.8.7:4222: connection refused (credentials /etc/secret.creds, bucket payroll)")

func wantSecretFree(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{"10.9.8.7", "secret.creds", "payroll"} {
		if strings.Contains(text, secret) {
			t.Errorf("subscribers are told %q", text)
		}
	}
}

// TestReasonsAreForEverybody: whatever a source reports, and however it ends,
// subscribers are told the kind of trouble, and operators all of it.
func TestReasonsAreForEverybody(t *testing.T) {
	for want, err := range map[string]error{
		"the upstream is unreachable or refuses the watch": errSecret,
		"the upstream stalled":                             fmt.Errorf("%w: %w", stream.ErrStalled, errSecret),
		"the upstream sent something invalid":              fmt.Errorf("%w: %w", stream.ErrInvalid, errSecret),
		"the upstream went back in revision":               fmt.Errorf("%w: %w", stream.ErrOrder, errSecret),
		"the upstream cannot go on from the last revision": fmt.Errorf("%w: %w", stream.ErrUnresumable, errSecret),
	} {
		t.Run(want, func(t *testing.T) {
			bubble(t, Config{}, []stream.SourceFunc{
				snapshotThen("e", 1, nil, stayFor(time.Minute, err)), fail(err), stay,
			}, func(t *testing.T, w *Watch, _ *script) {
				sub := w.Subscribe(log.SubscribeOptions{})
				defer sub.Close()
				time.Sleep(time.Minute + 2*time.Second)
				synctest.Wait()
				s := w.Status()
				if s.Reason != want || s.Detail != err.Error() || s.Full() != err.Error() {
					t.Errorf("status %+v, want %q and %q", s, want, err)
				}
				if u := w.Upstream(); u.LastReason != want || u.LastError != err.Error() {
					t.Errorf("upstream %+v, want %q", u, want)
				}
				told := 0
				for b := new(log.Batch); sub.Next(b); {
					for e := range b.Events() {
						wantSecretFree(t, e.Reason)
						if e.Type == stream.StatusChange && e.Reason == want {
							told++
						}
					}
				}
				if told != 1 {
					t.Errorf("the subscriber was told %d times, want once", told)
				}
			})
		})
	}
}

// TestWhatTheUpstreamSaysIsForOperators: another gateway, or a server that
// implements WatchList, may name its own upstream.
func TestWhatTheUpstreamSaysIsForOperators(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 1, nil, func(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
			return errors.Join(sink.Status(stream.Stale, errSecret.Error()), stay(ctx, resume, sink))
		}),
	}, func(t *testing.T, w *Watch, _ *script) {
		synctest.Wait()
		if s := w.Status(); s.State != stream.Stale || s.Reason != "the upstream says that it is stale" || s.Full() != "the upstream says: "+errSecret.Error() {
			t.Errorf("status %+v", s)
		}
	})
}

// TestStaleIsLoggedAsAWarning: somebody should look at a watch that is stale.
func TestStaleIsLoggedAsAWarning(t *testing.T) {
	var logged bytes.Buffer
	bubble(t, Config{Logger: slog.New(slog.NewTextHandler(&logged, nil))}, []stream.SourceFunc{
		snapshotThen("e", 3, []log.Change{upsert("a", 1)}, stayFor(time.Minute, errBroken)),
		fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken), fail(errBroken),
		snapshotThen("e", 4, []log.Change{upsert("a", 4)}, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		time.Sleep(10 * time.Minute)
		if w.Status().State != stream.InSync {
			t.Errorf("the watch is %v", w.Status().State)
		}
	})
	for _, want := range []string{"level=WARN msg=watch watch=w source=\"\" state=stale", "level=INFO msg=watch watch=w source=\"\" state=in_sync"} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("no %q in:\n%s", want, &logged)
		}
	}
}
