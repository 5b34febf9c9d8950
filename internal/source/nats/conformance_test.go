//go:build servers

package nats

import (
	"errors"
	"fmt"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

func TestConformance(t *testing.T) {
	for _, history := range []uint8{1, 10} {
		t.Run(fmt.Sprint("history ", history), func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
				return harness(t, server(t), jetstream.KeyValueConfig{History: history})
			})
		})
	}
}

// A server of its own can be restarted.
func TestConformanceOfRestarts(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
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

// A watch that is narrowed on the server, while others write beside it.
func TestConformanceOfSomeKeys(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		s := server(t)
		h := harness(t, s, jetstream.KeyValueConfig{}, func(c *Config) { c.Keys = "in.>" })
		put, remove := h.Put, h.Delete
		h.Key = func(i int) string { return "in." + keys(i) }
		h.Put = func(key, value string) error {
			return errors.Join(put("out."+key, value), put(key, value), put("out", value))
		}
		h.Delete = func(key string) error { return errors.Join(remove("out."+key), remove(key), remove("out")) }
		return h
	})
}

// keys are awkward ones, of what NATS allows.
func keys(i int) string {
	names := []string{"plain", "with/slash", "dotted.key.of.tokens", "a=b", "UPPER_case-", "ключ", "鍵"}
	return fmt.Sprintf("%s%d", names[i%len(names)], i)
}

// harness is a bucket behind a proxy.
func harness(t *testing.T, s *realserver.Server, c jetstream.KeyValueConfig, options ...func(*Config)) *sourcetest.Harness {
	b := newClient(t, s.Addr()).bucket(c)
	proxy := realserver.NewProxy(t, s.Addr())
	return &sourcetest.Harness{
		Source:     source(t, proxy.Addr(), b.config.Bucket, options...),
		Put:        b.putRaw,
		Delete:     b.removeRaw,
		Disconnect: proxy.Cut,
		Restore:    b.again,
		Resumes:    true,
		Key:        keys,
	}
}
