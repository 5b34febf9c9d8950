//go:build servers

package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/internal/streamtest/figures"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
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
