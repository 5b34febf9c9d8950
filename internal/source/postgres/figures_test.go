//go:build servers

package postgres

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// BenchmarkUpstream compares the source with a program that uses only the library.
func BenchmarkUpstream(b *testing.B) {
	d := newDatabase(b, realserver.StartPostgres(b))
	d.exec("TRUNCATE items")
	d.exec("ALTER TABLE items ALTER value TYPE text")
	idle := make(chan *pgconn.PgConn, 16)
	for range cap(idle) {
		conn, err := pgconn.Connect(b.Context(), d.admin)
		if err != nil {
			b.Fatal(err)
		}
		defer closeConn(conn)
		if _, err := conn.Prepare(b.Context(), "put", "UPDATE items SET value = $2 WHERE id = $1", nil); err != nil {
			b.Fatal(err)
		}
		idle <- conn
	}
	figures.Run(b, figures.Rig{
		Source: d.source(d.server.Addr(), Table{Name: "items"}),
		Load: func(_ context.Context, n int, value []byte) error {
			return d.try(fmt.Sprintf("INSERT INTO items SELECT 'k' || i, %s FROM generate_series(0, %d) i; ANALYZE items", literal(string(value)), n-1))
		},
		Put: func(ctx context.Context, i int, value []byte) error {
			conn := <-idle
			defer func() { idle <- conn }()
			return conn.ExecPrepared(ctx, "put", [][]byte{fmt.Append(nil, "k", i), value}, nil, nil).Read().Err
		},
		Raw: d.followRaw,
	})
}

// BenchmarkSnapshot reads a table of a million rows of 300 bytes, beside a program that uses only the library, and
// COPY to nowhere. It reports what the process holds once the watch is in sync, too.
func BenchmarkSnapshot(b *testing.B) {
	rows := 1_000_000
	if testing.Short() {
		rows = 100_000
	}
	d := newDatabase(b, realserver.StartPostgres(b, "max_wal_size=4GB"))
	d.exec("ALTER TABLE items ALTER value TYPE text")
	for part := range 10 {
		d.exec(fmt.Sprintf("INSERT INTO items SELECT 'k%d.' || i, repeat('x', 290) FROM generate_series(1, %d) i", part, rows/10))
	}
	d.exec("VACUUM ANALYZE items")
	perSecond := func(what string, read func()) {
		start := time.Now()
		read()
		b.ReportMetric(float64(rows)/time.Since(start).Seconds(), what+"-rows/s")
	}
	for range b.N {
		perSecond("copy", func() {
			if _, err := d.connection().CopyTo(b.Context(), io.Discard, "COPY items TO STDOUT"); err != nil {
				b.Fatal(err)
			}
		})
		perSecond("raw", func() {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			if err := d.followRaw(ctx, cancel, func([]byte) {}); err != nil {
				b.Fatal(err)
			}
		})
		before := held()
		registry := watch.NewRegistry()
		var w *watch.Watch
		perSecond("watch", func() {
			var err error
			if w, err = registry.Add(watch.Config{Name: "items", SourceName: "db", Source: d.source(d.server.Addr(), Table{Name: "items"})}); err != nil {
				b.Fatal(err)
			}
			for changed := w.Changed(); w.Status().State != stream.InSync; changed = w.Changed() {
				<-changed
			}
		})
		b.ReportMetric(float64(held()-before)/1e6, "held-MB")
		b.ReportMetric(float64(w.Snapshot().Bytes())/1e6, "log-MB")
		registry.Close()
	}
}

// held returns how many bytes the process uses.
func held() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// followRaw is a program that uses only the library: it copies the table, and then decodes the stream.
func (d *database) followRaw(ctx context.Context, primed func(), changed func(value []byte)) error {
	c := Config{URL: d.url(d.server.Addr())}
	c.setDefaults()
	conn, err := c.connect(ctx, true)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	r := replication{conn, &c}
	made, err := r.newSlot(ctx, slotOptions{temporary: true, export: true})
	if err != nil {
		return err
	}
	values, err := c.readRaw(ctx, made)
	if err != nil {
		return err
	}
	if err := r.start(ctx, made.name, made.point, DefaultPublication); err != nil {
		return err
	}
	primed()
	for confirmed := time.Now(); ; {
		m, err := r.receive(ctx)
		if err != nil || m == nil {
			return nil
		}
		if time.Since(confirmed) > time.Second {
			confirmed = time.Now()
			if err := r.confirm(made.point, made.point, false); err != nil {
				return err
			}
		}
		if len(m.message) == 0 || m.message[0] != msgUpdate {
			continue
		}
		change, err := decodeChange(m.message)
		if err != nil {
			return err
		}
		value := slices.Clone(change.new[1].text)
		values[string(change.new[0].text)] = value
		changed(value)
	}
}

// readRaw reads the whole table in the snapshot of a slot.
func (c *Config) readRaw(ctx context.Context, made slot) (map[string][]byte, error) {
	conn, err := c.connect(ctx, false)
	if err != nil {
		return nil, err
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '"+made.snapshot+"'").ReadAll(); err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	rows := conn.ExecParams(ctx, "SELECT id, value FROM public.items", nil, nil, nil, nil)
	for rows.NextRow() {
		row := rows.Values()
		values[string(row[0])] = slices.Clone(row[1])
	}
	_, err = rows.Close()
	return values, err
}
