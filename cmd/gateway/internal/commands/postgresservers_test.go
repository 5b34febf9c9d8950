//go:build servers

package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// withPostgres starts PostgreSQL, and returns the URL of its superuser and a function that executes
// statements.
func withPostgres(t *testing.T) (url string, exec func(sql string)) {
	t.Helper()
	server, ctx := realserver.StartPostgres(t), inTime(t)
	url = "postgres://postgres@" + server.Addr() + "/postgres?sslmode=disable"
	var conn *pgconn.PgConn
	for {
		var err error
		if conn, err = pgconn.Connect(ctx, url); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond) // it accepts connections before it is ready
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()); <-conn.CleanupDone() })
	return url, func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// postgresToKeep is a table that is followed with a permanent slot.
func postgresToKeep(t *testing.T) upstream {
	url, exec := withPostgres(t)
	exec("CREATE TABLE kept (id text PRIMARY KEY)")
	return upstream{
		source: fmt.Sprintf("{ type: postgres, url: %q, slot: gateway, manage: true }", url), watch: "table: kept",
		put: func(_ context.Context, key string) error {
			exec("INSERT INTO kept VALUES ('" + key + "')")
			return nil
		},
		remove: func(_ context.Context, key string) error {
			exec("DELETE FROM kept WHERE id = '" + key + "'")
			return nil
		},
	}
}

func TestInitForPostgres(t *testing.T) {
	url, exec := withPostgres(t)
	exec(`CREATE TABLE orders (id int PRIMARY KEY); CREATE SCHEMA sales; CREATE TABLE sales."odd.name" (id int PRIMARY KEY); CREATE TABLE keyless (id int)`)
	exec(`INSERT INTO orders VALUES (1), (2); INSERT INTO sales."odd.name" VALUES (3)`)
	config := filepath.Join(t.TempDir(), "watchtide.yaml")
	if code, stdout, stderr := command(t, "init", config, "--postgres", url); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	_, statement, found := strings.Cut(string(text), "# CREATE PUBLICATION")
	if !found {
		t.Fatalf("the statement that is missing is not there: %s", text)
	}
	statement, _, _ = strings.Cut(statement, "\n")
	exec("CREATE PUBLICATION" + statement)
	g := initialised(t, "--postgres", url)
	g.expectKeys("orders", "1", "2")
	g.expectKeys("odd.name", "3")
}

// TestTemplateOfTables: a name that clients ask for leads to a table of a list.
func TestTemplateOfTables(t *testing.T) {
	url, exec := withPostgres(t)
	exec("CREATE TABLE orders_eu (id int PRIMARY KEY); CREATE TABLE orders_us (id int PRIMARY KEY); CREATE TABLE orders_secret (id int PRIMARY KEY)")
	exec("CREATE PUBLICATION watchtide FOR ALL TABLES; INSERT INTO orders_eu VALUES (1); INSERT INTO orders_us VALUES (2)")
	g := serve(t, "--config", file(t, "watchtide.yaml", `
http: { listen: "127.0.0.1:0" }
sources: { db: { type: postgres, url: "`+url+`" } }
watches: { "orders-{region}": { source: db, table: "orders_{region}", params: { region: "eu|us" } } }
`))
	g.expectKeys("orders-eu", "1")
	g.expectKeys("orders-us", "2")
}

// TestReloadWithASlot: a watch that a reload adds shares the permanent slot of its source, and the tables of
// templates are not added to the publication.
func TestReloadWithASlot(t *testing.T) {
	url, exec := withPostgres(t)
	exec("CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE customers (id int PRIMARY KEY); CREATE TABLE orders_eu (id int PRIMARY KEY)")
	exec("INSERT INTO orders VALUES (1); INSERT INTO customers VALUES (2)")
	source := `
http: { listen: "127.0.0.1:0" }
sources: { db: { type: postgres, url: "` + url + `", slot: gateway, manage: true } }
`
	conf := file(t, "watchtide.yaml", source+"watches: { orders: { source: db, table: orders } }\n")
	g := serve(t, "--config", conf)
	g.expectKeys("orders", "1")
	g.reloaded(conf, source+`watches:
  orders: { source: db, table: orders }
  customers: { source: db, table: customers }
  "orders-{region}": { source: db, table: "orders_{region}", params: { region: "eu|us" } }
`)
	g.expectKeys("customers", "2")
	orders, customers := g.follow("/v1/watches/orders/events"), g.follow("/v1/watches/customers/events")
	exec("INSERT INTO orders VALUES (3); INSERT INTO customers VALUES (4)")
	awaitLine(t, orders, `"key":"3"`)
	awaitLine(t, customers, `"key":"4"`)
	g.follow("/v1/watches/orders-eu/events")
	g.logs.awaitTimes(t, `does not have \"public\".\"orders_eu\"`, 1)
}

// TestCheckOfDatabases: the statements that "config check --databases" prints are all that the tables lack.
func TestCheckOfDatabases(t *testing.T) {
	url, exec := withPostgres(t)
	exec(`CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE customers (id int PRIMARY KEY); CREATE ROLE wt LOGIN`)
	conf := file(t, "gateway.yaml", fmt.Sprintf(`
sources:
  db: { type: postgres, url: %q }
  managed: { type: postgres, url: %q, manage: true }
watches:
  orders: { source: db, table: orders }
  customers: { source: db, table: customers }
  some: { view_of: orders, filter: value.id > 1 }
  own: { source: managed, table: orders }
`, strings.Replace(url, "postgres@", "wt@", 1), url))
	code, stdout, stderr := command(t, "config", "check", conf)
	if code != 0 || !strings.Contains(stdout, "ok: 2 sources, 4 watches") {
		t.Fatalf("without a connection: exit code %d: %s%s", code, stdout, stderr)
	}
	for done := map[string]bool{}; ; {
		code, stdout, stderr = command(t, "config", "check", "--databases", conf)
		if code == 0 {
			break
		}
		if n := strings.Count(stderr, "watch "); len(done) == 0 && n != 2 || strings.Contains(stderr, "watch own") {
			t.Errorf("%d watches lack something, want orders and customers:\n%s", n, stderr)
		}
		_, want, found := strings.Cut(stderr, " want ")
		want, _, _ = strings.Cut(want, "\n")
		if !found || done[want] {
			t.Fatalf("exit code %d, and no new statement: %s", code, stderr)
		}
		done[want] = true
		exec(want)
	}
	if !strings.Contains(stdout, "ok: 2 sources, 4 watches") {
		t.Errorf("nothing is missing: %s%s", stdout, stderr)
	}
}
