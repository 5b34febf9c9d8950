//go:build servers

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

func TestFaults(t *testing.T) {
	runFaults(t, "postgres", "", func(d *database, do func(sql string) func() error) []faults.Fault {
		return []faults.Fault{
			{Name: "slot dropped", Broken: true, Inject: do(endStream)},
			{Name: "no slot is free", Gone: true, Inject: d.takeSlots, Heal: do("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_type = 'physical'")},
		}
	})
}

// TestFaultsOfAPermanentSlot is TestFaults for a source that goes on where it was.
func TestFaultsOfAPermanentSlot(t *testing.T) {
	runFaults(t, "postgres, slot", "mine", func(d *database, do func(sql string) func() error) []faults.Fault {
		return []faults.Fault{
			{Name: "connection ended by server", Broken: true, Inject: do(endStream)},
			{Name: "slot dropped", Broken: true, Inject: d.dropActive},
		}
	})
}

// dropActive ends the stream and drops the slot, however often the gateway comes back in between.
func (d *database) dropActive() error {
	for range 1000 {
		if err := d.try(endStream); err != nil {
			return err
		}
		if d.try("SELECT pg_drop_replication_slot('mine')") == nil {
			return nil
		}
	}
	return errors.New("the slot stays in use")
}

// runFaults injects all faults into a server, and the connection to it.
func runFaults(t *testing.T, name, slot string, more func(d *database, do func(sql string) func() error) []faults.Fault) {
	s := realserver.StartPostgres(t, "max_replication_slots=4")
	d := newDatabase(t, s)
	proxy := realserver.NewProxy(t, s.Addr())
	u := d.upstream(proxy.Addr(), permanent(slot))
	source, err := u.Source(Table{Name: "items"})
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{url: d.admin}
	restart := func() error {
		w.close()
		if err := s.Restart(); err != nil {
			return err
		}
		return d.try("SELECT 1")
	}
	do := func(sql string) func() error { return func() error { return d.try(sql) } }
	faults.Run(t, &faults.Rig{
		Name: name, Source: source, Proxy: proxy, Counts: true, Notice: 3 * time.Second, // the revision of a write is not told to its writer
		Put: w.put, Delete: w.delete, List: w.list,
		Kill: s.Kill, Restart: restart,
		Wipe: do("DROP TABLE items; CREATE TABLE items (id text PRIMARY KEY, value json); ALTER PUBLICATION watchtide ADD TABLE items; GRANT SELECT ON items TO wt"),
		More: append(more(d, do), []faults.Fault{
			{Name: "not published for a while", Gone: true,
				Inject: do("ALTER PUBLICATION watchtide DROP TABLE items"), Heal: do("ALTER PUBLICATION watchtide ADD TABLE items")},
			{Name: "not readable for a while", Gone: true,
				Inject: do("REVOKE SELECT ON items FROM wt"), Heal: do("GRANT SELECT ON items TO wt")},
			{Name: "VACUUM FULL", Inject: do("VACUUM FULL items")},
			{Name: "table rewritten", Inject: do("ALTER TABLE items ALTER value TYPE jsonb USING value::jsonb; ALTER TABLE items ALTER value TYPE json USING value::json")},
		}...),
		Value: func(n int) string { return fmt.Sprintf(`{"n": %d}`, n) },
		Close: func() { w.close(); d.close(); s.Kill() },
	})
}

// endStream ends the connection of the gateway, and so its slot.
const endStream = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active"

// takeSlots takes all slots away from the gateway.
func (d *database) takeSlots() error {
	for n := 0; n < 4; {
		if err := d.try(endStream); err != nil {
			return err
		}
		if d.try(fmt.Sprintf("SELECT pg_create_physical_replication_slot('taken%d')", n)) == nil {
			n++
		}
	}
	return nil
}

// writer writes to the table "items", and reads it, by itself.
type writer struct {
	url string

	mu   sync.Mutex // guards conn
	conn *pgconn.PgConn
}

// exec executes a statement once.
func (w *writer) exec(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil || w.conn.IsClosed() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		conn, err := pgconn.Connect(ctx, w.url)
		if err != nil {
			return nil, err
		}
		w.conn = conn
	}
	return w.conn.Exec(ctx, sql).ReadAll()
}

func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close(context.Background())
		<-w.conn.CleanupDone()
	}
}

func (w *writer) put(ctx context.Context, key, value string) (stream.Resource, error) {
	value = item(key, value)
	_, err := w.exec(ctx, put(key, value))
	return stream.Resource{Key: key, Value: []byte(value)}, err
}

func (w *writer) delete(ctx context.Context, key string) (uint64, error) {
	_, err := w.exec(ctx, remove(key))
	return 0, err
}

func (w *writer) list(ctx context.Context) (all []stream.Resource, revision uint64, err error) {
	results, err := w.exec(ctx, "SELECT id, value FROM items")
	if err != nil {
		return nil, 0, err
	}
	for _, row := range results[0].Rows {
		all = append(all, stream.Resource{Key: string(row[0]), Value: []byte(item(string(row[0]), string(row[1])))})
	}
	return all, 0, nil
}
