package nats

import (
	"testing"
	"testing/synctest"
	"time"
)

// An answer may be late behind large values, but not forever.
func TestLimited(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int64 // each half second
		want  time.Duration
	}{
		"silence":      {0, time.Second},
		"heartbeats":   {100, time.Second},
		"large values": {busy, silences * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, began := new(meter), time.Now()
				ctx, cancel := m.limited(t.Context(), time.Second)
				defer cancel()
				for ctx.Err() == nil {
					select {
					case <-ctx.Done():
					case <-time.After(500 * time.Millisecond):
						m.received.Add(test.bytes)
					}
				}
				if took := time.Since(began); took != test.want {
					t.Errorf("it ended after %v, want %v", took, test.want)
				}
			})
		})
	}
}
