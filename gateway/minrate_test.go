package gateway

import (
	"bufio"
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// trickle reads n bytes per second from each client, and keeps them to be read again.
func (r *slowReaders) trickle(seconds, n int) {
	r.t.Helper()
	kept := make([]bytes.Buffer, len(r.clients))
	for range seconds {
		time.Sleep(time.Second)
		for i, c := range r.clients {
			if _, err := io.CopyN(&kept[i], c.Reader, int64(n)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for i, c := range r.clients {
		c.Reader = bufio.NewReader(io.MultiReader(&kept[i], c.Reader))
	}
}

// TestMinRateOfStreams checks that a client that reads less than the minimum rate
// during a snapshot continues with the newest state, and holds nothing of the older
// state until then. A client that reads more is sent the state that its snapshot
// began with.
func TestMinRateOfStreams(t *testing.T) {
	for name, c := range map[string]struct {
		rate    int // bytes per second
		min     int64
		renewed bool
	}{
		"a client that stalls":          {rate: 10, renewed: true},
		"below the rate":                {rate: 2 << 10, renewed: true},
		"above the rate":                {rate: 6 << 10},
		"without a least rate, stalled": {rate: 10, min: -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newSlowReaders(t, 0, 300, 8000, Config{MinRate: c.min, WriteTimeout: time.Hour})
				r.begin(rawGet("/v1/events?watch=a"))
				r.rewrite()
				r.trickle(100, c.rate)
				synctest.Wait()
				// What the log itself has not compacted is 1.3 MiB; the older state
				// is another 1.1.
				const most = 1800 << 10
				left := r.superseded()
				if c.renewed != (left < most) {
					t.Errorf("%.0f bytes of an older state are held after 100 s; fewer than %d: want %t", left, most, c.renewed)
				}
				for _, client := range r.clients {
					if r.finish(client) != c.renewed {
						t.Errorf("continued with a newer state: %t, want %t", !c.renewed, c.renewed)
					}
				}
			})
		})
	}
}

// TestMinRateCountsTheWholeStream checks that a client that reads enough of all its
// watches together keeps its place in each.
func TestMinRateCountsTheWholeStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSlowReaders(t, 0, 120, 8000, Config{})
		var all []stream.Resource
		for i := range r.n {
			all = append(all, r.resource(i, uint64(i+1)))
		}
		for _, name := range []string{"b", "c", "d"} {
			r.Add(watch.Config{Name: name})
			r.Prime(name, uint64(len(all)), all...)
		}
		r.begin(rawGet("/v1/events?watch=a&watch=b&watch=c&watch=d"))
		r.rewrite()
		synctest.Wait()
		held := r.superseded()
		r.trickle(100, 6<<10)
		synctest.Wait()
		if left := r.superseded(); left < held {
			t.Errorf("%.0f bytes are held after 100 s, %.0f before", left, held)
		}
	})
}
