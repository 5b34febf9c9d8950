//go:build servers

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// database is a database of its own on a server, with a role that may replicate and a connection of the
// superuser.
type database struct {
	t      testing.TB
	server *realserver.Server
	name   string
	admin  string // the URL of the superuser

	mu   sync.Mutex // guards conn
	conn *pgconn.PgConn
}

// databases counts the names that were used.
var databases atomic.Int64

// newDatabase makes a database with a role "wt", a publication "watchtide" of the table "items", and the
// table: a key, and a value of JSON.
func newDatabase(t testing.TB, s *realserver.Server) *database {
	t.Helper()
	d := &database{t: t, server: s, name: fmt.Sprintf("db%d", databases.Add(1))}
	admin := &database{t: t, server: s, admin: "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable"}
	admin.exec("CREATE DATABASE " + d.name)
	admin.exec("DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'wt') THEN CREATE ROLE wt LOGIN REPLICATION; END IF; END $$")
	admin.close()
	d.admin = "postgres://postgres@" + s.Addr() + "/" + d.name + "?sslmode=disable"
	d.exec(`CREATE TABLE items (id text PRIMARY KEY, value json)`)
	d.exec(`CREATE PUBLICATION watchtide FOR TABLE items`)
	d.exec(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO wt`)
	t.Cleanup(d.close)
	return d
}

func within30s(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// connection returns a connection of the superuser, which is made again if it was lost.
func (d *database) connection() *pgconn.PgConn {
	if d.conn != nil && !d.conn.IsClosed() {
		return d.conn
	}
	if d.conn != nil {
		<-d.conn.CleanupDone()
	}
	for ctx := within30s(d.t); ; {
		conn, err := pgconn.Connect(ctx, d.admin)
		if err == nil {
			d.conn = conn
			return conn
		}
		if ctx.Err() != nil {
			d.t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (d *database) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close(context.Background())
		<-d.conn.CleanupDone()
		d.conn = nil
	}
}

// try executes statements, in one transaction if there are several.
func (d *database) try(sql string) error {
	_, err := d.results(sql)
	return err
}

func (d *database) results(sql string) ([]*pgconn.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ctx := within30s(d.t); ; {
		conn := d.connection()
		results, err := conn.Exec(ctx, sql).ReadAll()
		if err == nil || !conn.IsClosed() || ctx.Err() != nil {
			return results, err
		}
		// The server was restarted, which the connection notices only now.
	}
}

func (d *database) exec(sql string) {
	d.t.Helper()
	if err := d.try(sql); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

// url is that of the role wt, at an address.
func (d *database) url(address string) string {
	return "postgres://wt@" + address + "/" + d.name + "?sslmode=disable"
}

// upstream follows the database through an address.
func (d *database) upstream(address string, options ...func(*Config)) *Upstream {
	d.t.Helper()
	c := Config{URL: d.url(address), StallAfter: 2 * time.Second, checkEvery: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	for _, o := range options {
		o(&c)
	}
	u, err := New(c)
	if err != nil {
		d.t.Fatal(err)
	}
	return u
}

// source follows a table through an address.
func (d *database) source(address string, t Table) *Source {
	d.t.Helper()
	s, err := d.upstream(address).Source(t)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// literal returns a text as it is written in SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// item is the value of a resource of the table "items".
func item(key string, value string) string {
	return fmt.Sprintf(`{"id":%s,"value":%s}`, stream.AppendJSONString(nil, key), value)
}

// put returns the statement that makes a resource have a value, which is one of item.
func put(key, value string) string {
	var v struct{ Value json.RawMessage }
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		panic(err)
	}
	return fmt.Sprintf("INSERT INTO items VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET value = excluded.value", literal(key), literal(string(v.Value)))
}

// remove returns the statement that deletes a resource.
func remove(key string) string { return "DELETE FROM items WHERE id = " + literal(key) }

// version returns the major version of the server.
func (d *database) version() int {
	d.t.Helper()
	n, err := strconv.Atoi(d.query("SELECT current_setting('server_version_num')::int / 10000"))
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// skipBefore skips the test on a server that is older than a version, which has something.
func (d *database) skipBefore(version int, what string) {
	d.t.Helper()
	if n := d.version(); n < version {
		d.t.Skipf("PostgreSQL %d does not have %s", n, what)
	}
}
