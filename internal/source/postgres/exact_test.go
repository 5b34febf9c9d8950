//go:build servers

package postgres

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// shown returns what a watch of the table "items" has to show.
func (d *database) shown() map[string]string {
	d.t.Helper()
	results, err := d.results("SELECT id, value, pg_typeof(value) FROM items")
	if err != nil {
		d.t.Fatal(err)
	}
	all := map[string]string{}
	for _, row := range results[0].Rows {
		value := string(row[1])
		if string(row[2]) == "text" {
			value = string(stream.AppendJSONString(nil, value))
		}
		all[string(row[0])] = item(string(row[0]), value)
	}
	return all
}

// TestExact: whatever happens to the table, its definition, the publication, the slot and the connection, and in
// whatever order, a watch shows what the table has.
func TestExact(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	for name, slot := range map[string]string{"temporary": "", "permanent": "mine"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			d := newDatabase(t, realserver.StartPostgres(t))
			registry := watch.NewRegistry()
			defer registry.Close()
			w, err := registry.Add(watch.Config{
				Name: "items", SourceName: "db", Source: sourceOf(t, d.upstream(d.server.Addr(), permanent(slot)), "items"),
				Backoff: watch.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
			})
			if err != nil {
				t.Fatal(err)
			}
			kind := "json"
			for round := range rounds {
				var done []string
				for range 1 + random.IntN(4) {
					sql := disturbance(random, slot, &kind)
					done = append(done, sql)
					_ = d.try(sql) // a slot that is in use is not dropped
				}
				end := fmt.Sprint("end", round%2)
				d.exec("DELETE FROM items WHERE id = " + literal(end))
				d.exec(fmt.Sprintf("INSERT INTO items VALUES (%s, '%d')", literal(end), round))
				want := d.shown()
				var got map[string]string
				for late := time.Now().Add(20 * time.Second); !maps.Equal(got, want); {
					changed := w.Changed()
					got = map[string]string{}
					for r := range w.Snapshot().Resources() {
						got[r.Key] = string(r.Value)
					}
					if maps.Equal(got, want) {
						break
					}
					if time.Now().After(late) {
						t.Fatalf("after %q the watch shows\n%v, want\n%v; it is %+v", done, got, want, w.Status())
					}
					select {
					case <-changed:
					case <-time.After(time.Second):
					}
				}
			}
			t.Logf("%d rounds; tables read: %v", rounds, w.Stats().Resyncs)
		})
	}
}

// disturbance returns a statement that is executed at random.
func disturbance(random *rand.Rand, slot string, kind *string) string {
	key, n := literal(fmt.Sprint("k", random.IntN(8))), random.IntN(100)
	switch random.IntN(14) {
	case 0:
		return endStream
	case 1:
		if slot != "" {
			return endStream + "; SELECT pg_drop_replication_slot('" + slot + "')"
		}
		return endStream
	case 2:
		*kind = []string{"json", "jsonb", "text"}[random.IntN(3)]
		return "ALTER TABLE items ALTER value TYPE " + *kind + " USING value::text::" + *kind
	case 3:
		return "ALTER PUBLICATION watchtide DROP TABLE items; INSERT INTO items VALUES ('unseen', '1') ON CONFLICT (id) DO NOTHING; ALTER PUBLICATION watchtide ADD TABLE items"
	case 4:
		return "TRUNCATE items"
	case 5:
		return "BEGIN; " + endStream + fmt.Sprintf("; UPDATE items SET value = '%d'; COMMIT", n)
	case 6, 7:
		return "DELETE FROM items WHERE id = " + key
	case 8:
		return fmt.Sprintf("UPDATE items SET id = id || '.%d' WHERE id = %s", n, key)
	}
	return fmt.Sprintf("INSERT INTO items VALUES (%s, '%d') ON CONFLICT (id) DO UPDATE SET value = excluded.value", key, n)
}
