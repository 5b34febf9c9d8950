//go:build servers

package postgres

import (
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// managing has a source manage the publication.
func managing(c *Config) { c.Manage = true }

// managed returns a database that belongs to the role wt, without a publication.
func managedDatabase(t *testing.T, s *realserver.Server) *database {
	t.Helper()
	d := newDatabase(t, s)
	d.exec("DROP PUBLICATION watchtide")
	d.exec("GRANT CREATE ON DATABASE " + d.name + " TO wt")
	d.exec("ALTER TABLE items OWNER TO wt")
	return d
}

func (d *database) followManaged(t Table) *followed {
	d.t.Helper()
	s, err := d.upstream(d.server.Addr(), managing).Source(t)
	if err != nil {
		d.t.Fatal(err)
	}
	return follow(d.t, s, nil)
}

// own makes tables that belong to the role wt.
func (d *database) own(sql string) { d.exec("SET ROLE wt; " + sql); d.exec("RESET ROLE") }

// TestManage: the publication is made, and has each table that is watched, also a root of partitions.
func TestManage(t *testing.T) {
	d := managedDatabase(t, realserver.SharedPostgres(t))
	d.exec("GRANT CREATE ON SCHEMA public TO wt")
	d.own("CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10)")
	items := d.followManaged(Table{Name: "items"})
	d.exec(put("a", item("a", "1")))
	items.awaitValue("a", item("a", "1"))
	parts := d.followManaged(Table{Name: "parts"})
	d.exec("INSERT INTO parts VALUES (1)")
	parts.awaitValue("1", `{"id":1}`)
	d.exec(put("b", item("b", "1")))
	items.awaitValue("b", item("b", "1"))
	if got := d.query("SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_publication_tables WHERE pubname = 'watchtide'"); got != "items parts1" {
		t.Errorf("the publication has %s", got)
	}
}

// TestManageRefuses: what would make updates and deletes of applications fail is not published, and nothing
// of others is changed.
func TestManageRefuses(t *testing.T) {
	s := realserver.SharedPostgres(t)
	for name, c := range map[string]struct {
		before, write string
		table         Table
		want          string
	}{
		"no primary key": {"CREATE TABLE t (id int NOT NULL)", "INSERT INTO t VALUES (1); UPDATE t SET id = 2; DELETE FROM t", Table{}, "has no primary key"},
		"no identity":    {"CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY NOTHING", "INSERT INTO t VALUES (1); UPDATE t SET id = 2; DELETE FROM t", Table{}, "want ALTER TABLE"},
		"a partition without identity": {"CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE t1 PARTITION OF t DEFAULT; ALTER TABLE t1 REPLICA IDENTITY NOTHING",
			"INSERT INTO t VALUES (1); UPDATE t SET id = 2; DELETE FROM t", Table{}, "has no replica identity"},
		"where outside of the identity": {"CREATE TABLE t (id int PRIMARY KEY, state text)", "INSERT INTO t VALUES (1, 'a'); UPDATE t SET state = 'b'; DELETE FROM t",
			Table{Where: "state = 'open'"}, `where uses the column "state", which is not in the replica identity`},
		"no rights":       {"RESET ROLE; CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO wt", "INSERT INTO t VALUES (1); DELETE FROM t", Table{}, `ALTER PUBLICATION "watchtide" ADD TABLE "public"."t"`},
		"of a template":   {"CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", Table{Unmanaged: true}, `want ALTER PUBLICATION "watchtide" ADD TABLE "public"."t"`},
		"kinds of others": {"CREATE PUBLICATION watchtide WITH (publish = 'insert'); CREATE TABLE t (id int)", "INSERT INTO t VALUES (1); DELETE FROM t", Table{Name: "items"}, "leaves out some kinds of changes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := managedDatabase(t, s)
			if c.table.Where != "" {
				d.skipBefore(15, "a row filter")
			}
			d.exec("GRANT CREATE ON SCHEMA public TO wt")
			d.own(c.before)
			if c.table.Name == "" {
				c.table.Name = "t"
			}
			d.followManaged(c.table).mustEnd(c.want)
			for statement := range strings.SplitSeq(c.write, "; ") {
				d.exec(statement)
			}
			if got := d.query("SELECT count(*) FROM pg_publication_tables"); got != "0" {
				t.Errorf("%s tables are published", got)
			}
		})
	}
}

// TestWhere: the row filter of the publication is what the watch wants, whoever wrote it. A row that no longer
// matches is deleted.
func TestWhere(t *testing.T) {
	d := managedDatabase(t, realserver.SharedPostgres(t))
	if d.version() < 15 {
		d.followManaged(Table{Name: "items", Where: "id like 'open%'"}).mustEnd("want PostgreSQL 15 or newer for where")
		return
	}
	d.exec("ALTER TABLE items REPLICA IDENTITY FULL; ALTER TABLE items ALTER value TYPE text; INSERT INTO items VALUES ('open 1', '1'), ('other', '1')")
	of := Table{Name: "items", Where: "id like 'open%' and value <> '9'"}
	f := d.followManaged(of)
	f.awaitValue("open 1", `{"id":"open 1","value":"1"}`)
	f.awaitValue("other", "")
	d.exec("INSERT INTO items VALUES ('another', '1')")
	d.exec("INSERT INTO items VALUES ('open 2', '2')")
	f.awaitValue("open 2", `{"id":"open 2","value":"2"}`)
	f.awaitValue("another", "")
	d.exec("UPDATE items SET value = '9' WHERE id = 'open 1'")
	f.awaitValue("open 1", "")
	d.exec("UPDATE items SET id = 'open 3' WHERE id = 'other'")
	f.awaitValue("open 3", `{"id":"open 3","value":"1"}`)

	same := of
	same.Where = "(id LIKE 'open%') AND (value <> '9'::text)"
	d.follow(same).await("a snapshot", func() bool { return true })
	for where, want := range map[string]string{
		"id like 'closed%'": `want ALTER PUBLICATION "watchtide" DROP TABLE "public"."items"; ALTER PUBLICATION "watchtide" ADD TABLE "public"."items" WHERE (id like 'closed%')`,
		"nothing > 1":       `where: column "nothing" does not exist`,
		"true) OR (true":    "and where differs",
	} {
		d.follow(Table{Name: "items", Where: where}).mustEnd(want)
		d.followManaged(Table{Name: "items", Where: where}).mustEnd(want)
	}
	d.exec("ALTER PUBLICATION watchtide SET TABLE items")
	f.mustEnd("has all rows of")
}

// TestPublicationLost: a permanent slot whose stream comes to a change at which there was no publication is
// made again, since it would come to it again.
func TestPublicationLost(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	u := d.upstream(d.server.Addr(), permanent(d.slotName()))
	source := sourceOf(t, u, "items")
	f := follow(t, source, nil)
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	d.exec("DROP PUBLICATION watchtide")
	d.exec(put("a", item("a", "1")))
	<-f.ended
	d.exec("CREATE PUBLICATION watchtide FOR TABLE items")
	for there := false; !there; {
		next := follow(t, source, f)
		next.await("the row, or an end", func() bool {
			_, there = next.State()["a"]
			select {
			case <-next.ended:
				return true
			default:
				return there
			}
		})
		next.stop()
		f = next
	}
	d.dropSlot()
}
