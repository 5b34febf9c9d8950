package gateway

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
	streamwatch "github.com/watchtide/watchtide/stream/watch"
)

// A stream of a watch that is replaced comes back to the new one: it resumes if the order of
// revisions is the same and nothing is missing, else it is reset.
func TestStreamsOfAReplacedWatch(t *testing.T) {
	for name, c := range map[string]struct {
		epoch    string
		revision uint64
		reset    string // its reason; empty: the stream resumes
	}{
		"same order":     {"e1", 1, ""},
		"changes missed": {"e1", 5, `"reason":"expired"`},
		"another order":  {"e2", 1, `"reason":"epoch_changed"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, "a", "b")
				r.Prime("a", 1, gatewaytest.Resource("k", 1, "1"))
				r.Prime("b", 1)
				x, other := r.get("/v1/events?watch=a"), r.get("/v1/events?watch=b")
				x.Take()
				other.Take()
				r.Replace(streamwatch.Config{Name: "a"})
				if got := x.Take(); !strings.Contains(got, `"reason":"watch_replaced"`) {
					t.Errorf("got %q, want a goodbye", got)
				}
				again := r.get("/v1/events?watch=a", "Last-Event-ID: a@e1-1")
				if got := again.Take(); !strings.Contains(got, `"state":"priming"`) {
					t.Errorf("before the snapshot: got %q", got)
				}
				r.Do("a", func(s stream.Sink) error {
					if err := s.Reset(c.epoch); err != nil {
						return err
					}
					if err := s.Upsert(gatewaytest.Resource("k", 1, "1")); err != nil {
						return err
					}
					return s.Commit(c.revision)
				})
				got := again.Take()
				if strings.Contains(got, "event: reset") != (c.reset != "") || !strings.Contains(got, c.reset) || !strings.Contains(got, "end_of_snapshot") {
					t.Errorf("after the snapshot: got %q", got)
				}
				r.Commit("b", 2, gatewaytest.Resource("k", 2, "2"))
				if got := other.Take(); !strings.Contains(got, `"key":"k"`) || strings.Contains(got, "goodbye") {
					t.Errorf("the stream of another watch: got %q", got)
				}
			})
		})
	}
}

// A stream of two watches, of which one is removed and the other replaced, does not come
// back for both.
func TestRemovedCountsMoreThanReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "a", "b")
		r.Prime("a", 1)
		r.Prime("b", 1)
		x := r.get("/v1/events?watch=a&watch=b")
		x.Take()
		d := r.Registry.Draft()
		if _, err := d.Add(streamwatch.Config{Name: "a", Source: gatewaytest.NewScript()}); err != nil {
			t.Fatal(err)
		}
		d.Commit()
		if got := x.Take(); !strings.Contains(got, `"reason":"watch_removed"`) {
			t.Errorf("got %q, want a goodbye", got)
		}
	})
}
