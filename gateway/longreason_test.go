package gateway

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/stream"
)

// TestLongReasons: what a watch says of itself may be long, and is not in the log.
// Two that say so one after the other each keep their words.
func TestLongReasons(t *testing.T) {
	for _, format := range []string{"sse", "ndjson"} {
		t.Run(format, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{}, "a", "b")
				for _, name := range []string{"a", "b"} {
					r.do(name, func(s stream.Sink) error {
						return s.Status(stream.Stale, strings.Repeat(name, 2*outboxSmall))
					})
				}
				synctest.Wait()
				got := r.get("/v1/events?watch=a&watch=b&format=" + format).text()
				for _, name := range []string{"a", "b"} {
					if n := strings.Count(got, strings.Repeat(name, 2*outboxSmall)); n != 1 {
						t.Errorf("what %q says is there %d times", name, n)
					}
				}
			})
		})
	}
}
