//go:build servers

package consul

import (
	"fmt"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		server := resourceService(t)
		proxy := realserver.NewProxy(t, server.Addr())
		a := artistsAt(t, server.Addr())
		return &sourcetest.Harness{
			Source:     texts{newSource(t, Config{Address: proxy.Addr()})},
			Put:        func(key, value string) error { _, err := a.put(t.Context(), key, value); return err },
			Delete:     func(key string) error { return a.delete(t.Context(), key) },
			Disconnect: proxy.Cut,
			Restore: func() {
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
			},
			Key: func(i int) string { return fmt.Sprintf("%sname-%d", inDefault, i) },
		}
	})
}
