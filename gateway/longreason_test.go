package gateway

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream"
)

// TestLongReasons checks that what an upstream reports about itself, however long, goes to
// operators, cut, and not to every subscriber.
func TestLongReasons(t *testing.T) {
	for _, format := range []string{"sse", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, "a", "b")
				long := func(name string) string { return strings.Repeat(name, 8<<10) }
				for _, name := range []string{"a", "b"} {
					r.Do(name, func(s stream.Sink) error { return s.Status(stream.Stale, long(name)) })
				}
				synctest.Wait()
				got := r.get("/v1/events?watch=a&watch=b&format=" + format).Text()
				if n := strings.Count(got, `"reason":"the upstream says that it is stale"`); n != 2 || len(got) > 1000 {
					t.Errorf("it appears %d times, want once for each watch: %.1000s", n, got)
				}
				for _, name := range []string{"a", "b"} {
					got := r.get("/v1/watches/" + name).Text()
					if !strings.Contains(got, strings.Repeat(name, 900)) || !strings.Contains(got, "…") || len(got) > 2<<10 {
						t.Errorf("the reason of %q for operators: %.3000s", name, got)
					}
				}
			})
		})
	}
}
