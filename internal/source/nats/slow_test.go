//go:build servers

package nats

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// A line so slow that heartbeats and answers come seconds late, behind the values,
// is not stalled while values arrive.
func TestSlowLineIsNoStall(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, _ := shared(t, jetstream.KeyValueConfig{})
	value := `"` + strings.Repeat("x", 200<<10) + `"`
	b.fill(20, func(int) string { return value })
	proxy := realserver.NewProxy(t, server(t).Addr())
	proxy.Trickle(1 << 20)
	s := source(t, proxy.Addr(), b.config.Bucket, func(c *Config) { c.StallAfter = MinStallAfter })
	began := time.Now()
	r := start(t, s, nil)
	r.until(func() string {
		if len(r.Commits()) == 0 {
			return "no snapshot"
		}
		return ""
	})
	if took := time.Since(began); took < 4*MinStallAfter {
		t.Errorf("the line was not slow: %v", took)
	}
	if len(r.State()) != 20 {
		t.Errorf("%d keys, want 20", len(r.State()))
	}
}
