//go:build servers

package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream/sourcetest"
)

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		return harness(newDatabase(t, realserver.SharedPostgres(t)))
	})
}

// A server of its own can be restarted.
func TestConformanceOfRestarts(t *testing.T) {
	s := realserver.StartPostgres(t)
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		h := harness(newDatabase(t, s))
		h.Restart = func() {
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		return h
	})
}

func TestConformanceOfAPermanentSlot(t *testing.T) {
	s := realserver.StartPostgres(t, "max_replication_slots=200")
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		d := newDatabase(t, s)
		return harness(d, permanent(d.slotName()))
	})
}

// harness is the table "items" behind a proxy.
func harness(d *database, options ...func(*Config)) *sourcetest.Harness {
	proxy := realserver.NewProxy(d.t, d.server.Addr())
	return &sourcetest.Harness{
		Source: sourceOf(d.t, d.upstream(proxy.Addr(), options...), "items"),
		Put:    func(key, value string) error { return d.try(put(key, value)) },
		Delete: func(key string) error { return d.try(remove(key)) },
		Transaction: func(writes []sourcetest.Write) error {
			var all []string
			for _, w := range writes {
				if w.Delete {
					all = append(all, remove(w.Key))
				} else {
					all = append(all, put(w.Key, w.Value))
				}
			}
			return d.try(strings.Join(all, ";"))
		},
		Disconnect: proxy.Cut,
		Restore: func() { // a table that is made again
			d.exec("DROP TABLE items; CREATE TABLE items (id text PRIMARY KEY, value json); ALTER PUBLICATION watchtide ADD TABLE items; GRANT SELECT ON items TO wt")
		},
		Value: func(key string, n int) string {
			return item(key, fmt.Sprintf(`{"n":%d,"large":9007199254740993.%d,"text":"\u00e4\\\u2028"}`, n, n))
		},
	}
}
