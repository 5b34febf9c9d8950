package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/source/postgres"
)

const everyKeyOfPostgres = `
sources:
  db:
    type: postgres
    url: "postgres://wt@db/app?sslmode=disable"
    password_file: token
    tls: { server_name: db }
    publication: live
    stall_after: 3s
    slot: gateway_1
    manage: true
    failover: true
    max_retained_wal: 2GiB
watches:
  orders: { source: db, table: public.orders, key: [region, id], columns: [id, region, state], where: "id > 0" }
  "orders-{region}": { source: db, table: "orders_{region}", params: { region: "eu|us" } }
`

func TestPostgresSource(t *testing.T) {
	c := parse(t, everyKeyOfPostgres)
	got := c.Sources[0].Postgres
	if got.TLS == nil || got.TLS.ServerName != "db" {
		t.Errorf("TLS is %+v, want the server name db", got.TLS)
	}
	got.TLS = nil
	want := postgres.Config{URL: "postgres://wt@db/app?sslmode=disable", PasswordFile: "etc/token", Publication: "live", StallAfter: 3 * time.Second,
		Slot: "gateway_1", Manage: true, Failover: true, MaxRetainedWAL: 2 << 30}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	table := postgres.Table{Name: "public.orders", Key: []string{"region", "id"}, Columns: []string{"id", "region", "state"}, Where: "id > 0"}
	if w := c.Watches[0]; !reflect.DeepEqual(w.Postgres, table) {
		t.Errorf("read %+v, want %+v", w.Postgres, table)
	}
	if w, ok := c.Templates[0].Watch("orders-us"); !ok || w.Postgres.Name != "orders_us" {
		t.Errorf("the watch of the template: %+v, %v", w.Postgres, ok)
	}
}

func TestPostgresSourceErrors(t *testing.T) {
	const url = `url: "postgres://wt@db/app"`
	for _, c := range []struct{ name, keys, watch, want string }{
		{"no url", `stall_after: 1s`, "table: t", "sources.db: url is missing, which a source of type postgres must have"},
		{"a password in the url", `url: "postgres://u:p@db/app"`, "table: t", "without a password, which password_file has"},
		{"no database", `url: "postgres://u@db"`, "table: t", "want postgres://user@host:port/database"},
		{"too short", url + `, stall_after: 10ms`, "table: t", "want a duration of at least 1s"},
		{"a slot with capitals", url + `, slot: Gateway`, "table: t", "want the name of a slot"},
		{"little WAL", url + `, max_retained_wal: 1MiB`, "table: t", "at least 16MiB"},
		{"no table", url, "columns: [a]", "watches.orders: table is missing; want the name of a table"},
		{"a table of three parts", url, "table: a.b.c", `watches.orders.table: "a.b.c": want the name of a table`},
		{"an empty column", url, `table: t, key: [""]`, "want the name of a column"},
		{"a key of another type", url, "table: t, bucket: b", "bucket is for watches of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "sources: { db: { type: postgres, " + c.keys + " } }\nwatches: { orders: { source: db, " + c.watch + " } }\n"
			_, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
