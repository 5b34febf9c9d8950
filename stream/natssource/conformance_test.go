package natssource

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchtide/watchtide/stream/streamtest"
	"github.com/watchtide/watchtide/stream/streamtest/faultproxy"
	"github.com/watchtide/watchtide/stream/streamtest/realserver"
)

func TestConformance(t *testing.T) {
	for _, history := range []uint8{1, 10} {
		t.Run(fmt.Sprint("history ", history), func(t *testing.T) {
			streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
				return harness(t, server(t), jetstream.KeyValueConfig{History: history})
			})
		})
	}
}

// A server of its own can be restarted.
func TestConformanceOfRestarts(t *testing.T) {
	streamtest.RunConformance(t, func(t *testing.T) *streamtest.Harness {
		s := ownServer(t)
		h := harness(t, s, jetstream.KeyValueConfig{})
		h.Restart = func() {
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		return h
	})
}

// keys are awkward ones, of what NATS allows.
func keys(i int) string {
	names := []string{"plain", "with/slash", "dotted.key.of.tokens", "a=b", "UPPER_case-", "ключ", "鍵"}
	return fmt.Sprintf("%s%d", names[i%len(names)], i)
}

// harness is a bucket behind a proxy.
func harness(t *testing.T, s *realserver.Server, c jetstream.KeyValueConfig) *streamtest.Harness {
	b := newClient(t, s.Addr()).bucket(c)
	proxy := faultproxy.New(t, s.Addr())
	return &streamtest.Harness{
		Source:     source(t, proxy.Addr(), b.config.Bucket),
		Put:        b.putRaw,
		Delete:     b.removeRaw,
		Disconnect: proxy.Cut,
		Restore:    b.again,
		Resumes:    true,
		Key:        keys,
	}
}
