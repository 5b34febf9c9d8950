package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
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
		for of, query := range map[string]string{"the watch": "", "a view": asking("filter", "value != ''", "watch", "a")} {
			t.Run(name+", of "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := gatewaytest.NewViews(t)
					r := newSlowReaders(t, 0, 300, 8000, Config{StreamSettings: StreamSettings{MinRate: c.min, WriteTimeout: time.Hour}, engine: v})
					r.begin(rawGet("/v1/events" + cmp.Or(query, "?watch=a")))
					r.rewrite()
					r.trickle(100, c.rate)
					synctest.Wait()
					// What the log itself has not compacted is 1.3 MiB; the older state
					// is another 1.1, which is there twice if it is that of a view.
					most, left := 1800<<10, int(r.superseded())
					if query != "" {
						most, left = 4000<<10, int(v.Stats().Bytes)
					}
					if c.renewed != (left < most) {
						t.Errorf("%d bytes are held after 100 s; fewer than %d: want %t", left, most, c.renewed)
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

// TestSkippedOfASlowReaderOfAView checks the count of a client that loses its version in the
// middle of a catch-up, after most of what it was sent has changed again.
func TestSkippedOfASlowReaderOfAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, left = 1000, 150 // left for the newer state
		r := newSlowReaders(t, 0, n, 8000, Config{StreamSettings: StreamSettings{WriteTimeout: time.Hour, MaxAge: -1}, Metrics: true, engine: gatewaytest.NewViews(t)})
		r.begin(rawGet("/v1/events" + asking("watch", "a", "filter", "value != ''")))
		c := r.clients[0]
		readUntil(t, c, "end_of_snapshot")
		r.rewrite()
		for range n - left {
			readUntil(t, c, `"type":"upsert"`)
		}
		r.rewrite()
		time.Sleep(10 * time.Minute) // which is below the minimum rate
		r.rewrite()
		readUntil(t, c, "catching_up")
		skipped := readSkipped(t, c)
		synctest.Wait()
		const most = 2*n + left
		counted := counter(t, r.gateway, "watchtide_conflated_changes_total", "transport", "sse")
		if listed := r.only().Skipped; skipped > most || listed > most || counted > most {
			t.Errorf("of at most %d changes, %d were skipped; the list of subscribers has %d, the metric %v", most, skipped, listed, counted)
		}
	})
}

// readSkipped reads up to the next bookmark, and returns how many changes were skipped.
func readSkipped(t *testing.T, c *rawConn) uint64 {
	t.Helper()
	for {
		line, err := c.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Type    string
			Skipped uint64
		}
		text, is := strings.CutPrefix(line, "data: ")
		if is && json.Unmarshal([]byte(text), &e) == nil && e.Type == "bookmark" {
			return e.Skipped
		}
	}
}
