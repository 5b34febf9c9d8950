//go:build servers

package consul

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

const many = 3000

func manyName(i int) string { return fmt.Sprintf("n%04d", i) }

// TestRestartOfADurableServer: for seconds after its start such a server reports
// an empty or partial collection. No subscriber may see anything vanish.
func TestRestartOfADurableServer(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		c.fill(many, manyName)
		w := follow(t, texts{newSource(t, Config{Address: c.Addr()})})
		epoch := w.Snapshot().Epoch()
		for n, restart := range []func(){
			func() { c.Kill(); c.again() },
			func() { _ = c.Stop(); c.again() },
		} {
			restart()
			w.is(stream.Stale)
			c.elect()
			text := fmt.Sprintf(`"after restart %d"`, n)
			c.mustPut(t, manyName(7), text)
			w.holds(manyName(7), text)
		}
		if gone := w.deleted(); len(gone) > 0 || w.count(stream.Reset) != 1 {
			t.Errorf("%d deletes and %d resets were sent, want none but the first reset", len(gone), w.count(stream.Reset))
		}
		if n, now := w.Snapshot().Count(), w.Snapshot().Epoch(); n != many || now != epoch {
			t.Errorf("there are %d in epoch %s, want %d in %s", n, now, many, epoch)
		}
	})
}

// TestRestore: a restored snapshot takes resources back in time.
func TestRestore(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		c.mustPut(t, "changed", `"old"`)
		c.mustPut(t, "deleted", `"old"`)
		w := follow(t, texts{newSource(t, Config{Address: c.Addr()})})
		backup := c.call(http.MethodGet, "/v1/snapshot", nil)
		c.mustPut(t, "created", `"new"`)
		w.holds("created", `"new"`)

		c.call(http.MethodPut, "/v1/snapshot", backup)
		w.holds("created", "")
		if n := w.count(stream.Reset); n != 1 {
			t.Errorf("%d resets: nothing went back in time, so deletes suffice", n)
		}

		epoch := w.Snapshot().Epoch()
		c.mustPut(t, "changed", `"new"`)
		c.mustDelete(t, "deleted")
		w.holds("deleted", "")
		c.call(http.MethodPut, "/v1/snapshot", backup)
		w.holds("deleted", `"old"`)
		w.holds("changed", `"old"`)
		if now := w.Snapshot().Epoch(); now == epoch {
			t.Errorf("the epoch is still %s", now)
		}
		c.mustPut(t, "changed", `"newest"`)
		w.holds("changed", `"newest"`)
		w.is(stream.InSync)
	})
}

// TestRestartOfAServerInMemory: it has lost its data, and counts from the
// beginning.
func TestRestartOfAServerInMemory(t *testing.T) {
	eachConsul(t, "-dev", "", func(t *testing.T, c *consul) {
		for i := range 20 {
			c.mustPut(t, manyName(i), `"old"`)
		}
		w := follow(t, texts{newSource(t, Config{Address: c.Addr()})})
		epoch := w.Snapshot().Epoch()
		c.Kill()
		c.again()
		c.elect()
		c.mustPut(t, "new", `"new"`)
		w.holds("new", `"new"`)
		w.holds(manyName(0), "")
		if now := w.Snapshot().Epoch(); now == epoch {
			t.Errorf("the epoch is still %s", now)
		}
		other := follow(t, texts{newSource(t, Config{Address: c.Addr()})})
		if a, b := w.Snapshot().Epoch(), other.Snapshot().Epoch(); a != b {
			t.Errorf("epoch %s here, %s at a replica that saw only the new cluster", a, b)
		}
	})
}
