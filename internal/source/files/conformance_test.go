package files

import (
	"github.com/watchtide/watchtide/stream/sourcetest"
	"os"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest"
)

// TestConformance runs the suite of every source against a real directory. It
// does not claim to resume: only the newest position can be resumed.
func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		d := newDisk(t)
		return &sourcetest.Harness{
			Source: d.source(Config{}),
			Put:    func(key, value string) error { return d.replace(key+".json", value) },
			Delete: func(key string) error { return os.RemoveAll(d.path(key + ".json")) },
		}
	})
}

// TestConformanceOfGenerations is the same where the directory is a link that is
// moved from one complete directory to the next: each move is a transaction.
func TestConformanceOfGenerations(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		g := newGenerations(t)
		transaction := func(writes ...streamtest.Write) error {
			for _, w := range writes {
				g.files[w.Key+".json"] = w.Value
				if w.Delete {
					delete(g.files, w.Key+".json")
				}
			}
			return g.publish()
		}
		return &sourcetest.Harness{
			Source:      g.source(Config{}),
			Put:         func(key, value string) error { return transaction(streamtest.Write{Key: key, Value: value}) },
			Delete:      func(key string) error { return transaction(streamtest.Write{Key: key, Delete: true}) },
			Transaction: func(writes []streamtest.Write) error { return transaction(writes...) },
		}
	})
}
