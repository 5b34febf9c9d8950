//go:build servers

package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// followed is one Watch call under way.
type followed struct {
	*streamtest.SinkRecorder
	t      testing.TB
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // read after ended
}

// follow calls Watch, from nothing or from where another call has ended.
func follow(t testing.TB, s *Source, from *followed) *followed {
	t.Helper()
	var resume stream.Resume
	var state streamtest.State
	if from != nil {
		resume, state = from.Resume(), from.State()
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &followed{SinkRecorder: streamtest.NewSinkRecorder(resume, state), t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		f.err = s.Watch(ctx, resume, f.SinkRecorder)
		f.End()
	}()
	t.Cleanup(func() {
		f.stop()
		if err := f.Err(); err != nil {
			t.Errorf("the contract of Sink was broken: %v", err)
		}
	})
	return f
}

func (f *followed) stop() {
	f.cancel()
	<-f.ended
}

// await waits until something holds.
func (f *followed) await(what string, holds func() bool) {
	f.t.Helper()
	late := time.After(20 * time.Second)
	for {
		changed := f.Changed()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-f.ended:
			if !holds() {
				f.t.Fatalf("Watch returned %v before: %s", f.err, what)
			}
			return
		case <-late:
			f.t.Fatalf("not in time: %s; there is %v", what, f.State())
		}
	}
}

// awaitValue waits until a resource has a value; empty: it does not exist.
func (f *followed) awaitValue(key, value string) {
	f.t.Helper()
	f.await(key+" is "+value, func() bool {
		got, ok := f.State()[key]
		return len(f.Commits()) > 0 && ok == (value != "") && (!ok || got.Value == streamtest.ValueText(value))
	})
}

// mustEnd waits until Watch returns an error with a text.
func (f *followed) mustEnd(text string) {
	f.t.Helper()
	select {
	case <-f.ended:
	case <-time.After(20 * time.Second):
		f.t.Fatalf("Watch did not return, want an error with %q", text)
	}
	if f.err == nil || !strings.Contains(f.err.Error(), text) {
		f.t.Fatalf("Watch returned %v, want an error with %q", f.err, text)
	}
}

// table makes a table that is published and may be read.
func (d *database) table(definition string) {
	d.t.Helper()
	name, _, _ := strings.Cut(definition, " ")
	d.exec("CREATE TABLE " + definition)
	d.exec("ALTER PUBLICATION watchtide ADD TABLE " + name)
	d.exec("GRANT SELECT ON " + name + " TO wt")
}

func (d *database) follow(t Table) *followed {
	return follow(d.t, d.source(d.server.Addr(), t), nil)
}

// query returns the first value of a query.
func (d *database) query(sql string) string {
	d.t.Helper()
	results, err := d.results(sql)
	if err != nil || len(results[0].Rows) == 0 {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return string(results[0].Rows[0][0])
}

// TestValues: the snapshot and the stream serve the same text of each type.
func TestValues(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec("CREATE TYPE mood AS ENUM ('calm'); CREATE DOMAIN price AS numeric(20,10)")
	d.table(`everything (id int8 PRIMARY KEY, b bool, i int2, n numeric, f float8, p price, j json, jb jsonb, y bytea,
		at timestamptz, local timestamp, day date, u uuid, a int[], m mood, r int4range, t text, nothing text)`)
	row := `9007199254740993, true, 7, 1.10, 1e-7, 0.5, '{"a" : 1.0}', '{"b":[1]}', '\x00ff', '2026-11-27 21:02:57.5+02', '2026-11-27 19:02:57',
		'2026-11-27', '7b2f0a7e-3d1c-4f5e-8a9b-0c1d2e3f4a5b', '{1,2}', 'calm', '[1,3)', E'a"\n', NULL`
	want := `{"id":9007199254740993,"b":true,"i":7,"n":1.10,"f":1e-07,"p":0.5000000000,"j":{"a" : 1.0},"jb":{"b": [1]},"y":"AP8=",` +
		`"at":"2026-11-27T19:02:57.5Z","local":"2026-11-27T19:02:57","day":"2026-11-27","u":"7b2f0a7e-3d1c-4f5e-8a9b-0c1d2e3f4a5b",` +
		`"a":"{1,2}","m":"calm","r":"[1,3)","t":"a\"\n","nothing":null}`
	d.exec("INSERT INTO everything VALUES (" + row + ")")
	f := d.follow(Table{Name: "everything"})
	f.awaitValue("9007199254740993", want)
	d.exec("DELETE FROM everything")
	f.awaitValue("9007199254740993", "")
	d.exec("INSERT INTO everything VALUES (" + row + ")")
	f.awaitValue("9007199254740993", want)
}

// TestUnchangedLargeValue: an update does not send what is stored out of line and has not changed, and
// the value is still complete, with the replica identity that the table has.
func TestUnchangedLargeValue(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.table("large (id int PRIMARY KEY, body text, n int)")
	random := make([]byte, 50_000)
	rand.Read(random)
	body := hex.EncodeToString(random)
	d.exec("INSERT INTO large VALUES (1, '" + body + "', 0)")
	f := d.follow(Table{Name: "large"})
	value := func(id, n int) string { return fmt.Sprintf(`{"id":%d,"body":"%s","n":%d}`, id, body, n) }
	f.awaitValue("1", value(1, 0))
	d.exec("UPDATE large SET n = 1")
	f.awaitValue("1", value(1, 1))
	d.exec("UPDATE large SET id = 2, n = 2")
	f.awaitValue("2", value(2, 2))
	f.awaitValue("1", "")
	d.exec("BEGIN; UPDATE large SET id = 3; UPDATE large SET n = 3; COMMIT")
	f.awaitValue("3", value(3, 3))
}

func TestTruncate(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec("INSERT INTO items SELECT i, '1' FROM generate_series(1, 100) i")
	f := d.follow(Table{Name: "items"})
	f.awaitValue("100", item("100", "1"))
	d.exec("BEGIN; TRUNCATE items; INSERT INTO items VALUES ('new', '2'); COMMIT")
	f.awaitValue("new", item("new", "2"))
	commits := f.Commits()
	for _, c := range commits {
		if n := len(c.State); n != 100 && n != 1 {
			t.Errorf("a commit of %d shows %d resources: half of a transaction", c.Revision, n)
		}
	}
}

func TestCompositeKeyAndColumns(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.table(`odd (region text, id int, secret text, "State" text, PRIMARY KEY (region, id))`)
	f := d.follow(Table{Name: "public.odd", Columns: []string{"State", "id"}})
	d.exec(`INSERT INTO odd VALUES ('a/b', 1, 'x', 'new')`)
	f.awaitValue("a%2Fb/1", `{"id":1,"State":"new"}`)
	d.exec(`UPDATE odd SET region = 'c'`)
	f.awaitValue("c/1", `{"id":1,"State":"new"}`)
	f.awaitValue("a%2Fb/1", "")
	d.exec("DELETE FROM odd")
	f.awaitValue("c/1", "")
}

// TestUniqueIndexAsKey: a table without a primary key, whose replica identity is an index.
func TestUniqueIndexAsKey(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.table("coded (code text NOT NULL, n int)")
	d.exec("CREATE UNIQUE INDEX codes ON coded (code); ALTER TABLE coded REPLICA IDENTITY USING INDEX codes")
	f := d.follow(Table{Name: "coded", Key: []string{"code"}})
	d.exec("INSERT INTO coded VALUES ('a', 1); UPDATE coded SET n = 2")
	f.awaitValue("a", `{"code":"a","n":2}`)
	d.exec("ALTER TABLE coded REPLICA IDENTITY FULL; DELETE FROM coded")
	f.awaitValue("a", "")
}

// TestWhatIsMissing: an error says which statement helps.
func TestWhatIsMissing(t *testing.T) {
	s := realserver.SharedPostgres(t)
	for name, c := range map[string]struct {
		before string
		table  Table
		want   string
	}{
		"no table":               {"", Table{Name: "nothing"}, `there is no table "public"."nothing"`},
		"no publication":         {"DROP PUBLICATION watchtide", Table{}, `want CREATE PUBLICATION "watchtide" FOR TABLE "public"."items"`},
		"not in the publication": {"ALTER PUBLICATION watchtide DROP TABLE items", Table{}, `want ALTER PUBLICATION "watchtide" ADD TABLE "public"."items"`},
		"no deletes":             {"ALTER PUBLICATION watchtide SET (publish = 'insert, update')", Table{}, `SET (publish = 'insert, update, delete, truncate')`},
		"no right to read":       {"REVOKE SELECT ON items FROM wt", Table{}, `may not read column "id": want GRANT SELECT ON "public"."items" TO "wt"`},
		"no schema":              {"REVOKE USAGE ON SCHEMA public FROM public, wt", Table{}, `want GRANT USAGE ON SCHEMA "public" TO "wt"`},
		"no primary key":         {"ALTER TABLE items DROP CONSTRAINT items_pkey", Table{}, `has no primary key: want ALTER TABLE "public"."items" ADD PRIMARY KEY`},
		"no replica identity":    {"ALTER TABLE items REPLICA IDENTITY NOTHING", Table{}, `want ALTER TABLE "public"."items" REPLICA IDENTITY DEFAULT`},
		"a key that may be null": {"", Table{Key: []string{"value"}}, `want ALTER TABLE "public"."items" ALTER COLUMN "value" SET NOT NULL`},
		"a key of two rows":      {"ALTER TABLE items ADD n int NOT NULL", Table{Key: []string{"n"}}, `want CREATE UNIQUE INDEX ON "public"."items" ("n")`},
		"a key outside of the identity": {"ALTER TABLE items ADD n int NOT NULL UNIQUE", Table{Key: []string{"n"}},
			`want ALTER TABLE "public"."items" REPLICA IDENTITY USING INDEX`},
		"an unknown key":         {"", Table{Key: []string{"no"}}, `has no column "no", which key names`},
		"an unknown column":      {"", Table{Columns: []string{"no"}}, `has no column "no", which columns names`},
		"a view":                 {"CREATE VIEW v AS SELECT * FROM items", Table{Name: "v"}, "is not a table"},
		"an unlogged table":      {"CREATE UNLOGGED TABLE u (id int PRIMARY KEY)", Table{Name: "u"}, `want ALTER TABLE "public"."u" SET LOGGED`},
		"row-level security":     {"ALTER TABLE items ENABLE ROW LEVEL SECURITY", Table{}, `want ALTER ROLE "wt" BYPASSRLS`},
		"an unpublished column":  {"ALTER PUBLICATION watchtide SET TABLE items (id)", Table{Columns: []string{"value"}}, `does not have column "value"`},
		"a generated column":     {"ALTER TABLE items ADD g text GENERATED ALWAYS AS (id) STORED", Table{Columns: []string{"g"}}, `column "g" of "public"."items" is generated`},
		"partitions as the root": {"CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT; ALTER PUBLICATION watchtide ADD TABLE p; ALTER PUBLICATION watchtide SET (publish_via_partition_root)", Table{Name: "p"}, `SET (publish_via_partition_root = false)`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, s)
			d.exec("CREATE TABLE other (id int PRIMARY KEY); SELECT 1")
			if name == "an unpublished column" {
				d.skipBefore(15, "a publication of some columns")
			}
			if c.before != "" {
				d.exec(c.before)
			}
			if c.table.Name == "" {
				c.table.Name = "items"
			}
			d.follow(c.table).mustEnd(c.want)
		})
	}
}

// TestServersThatCannot: an error says which setting or right of the server helps.
func TestServersThatCannot(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		before   string
		want     string
	}{
		"wal_level": {[]string{"wal_level=replica"}, "", "want ALTER SYSTEM SET wal_level = 'logical'"},
		"slots":     {[]string{"max_replication_slots=1"}, "", "want a higher max_replication_slots"},
		"senders":   {[]string{"max_wal_senders=1"}, "", "want a higher max_wal_senders"},
		"the role":  {nil, "ALTER ROLE wt NOREPLICATION", `want ALTER ROLE "wt" REPLICATION`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, realserver.StartPostgres(t, c.settings...))
			if c.before != "" {
				d.exec(c.before)
			}
			d.follow(Table{Name: "items"}).mustEnd(c.want)
		})
	}
}

// TestChecksWhileItRuns: rights and definitions are looked at again.
func TestChecksWhileItRuns(t *testing.T) {
	s := realserver.SharedPostgres(t)
	for name, c := range map[string]struct{ change, back, want string }{
		"revoked":     {"REVOKE SELECT ON items FROM wt", "GRANT SELECT ON items TO wt", "want GRANT SELECT"},
		"dropped":     {"ALTER TABLE items RENAME TO gone", "ALTER TABLE gone RENAME TO items", "there is no table"},
		"unpublished": {"ALTER PUBLICATION watchtide DROP TABLE items", "ALTER PUBLICATION watchtide ADD TABLE items", "ADD TABLE"},
		"taken out and added": {"ALTER PUBLICATION watchtide DROP TABLE items; INSERT INTO items VALUES ('b', '2'); ALTER PUBLICATION watchtide ADD TABLE items",
			"SELECT 1", errChanged.Error()},
		"filtered":  {"ALTER PUBLICATION watchtide SET TABLE items WHERE (id <> 'a')", "ALTER PUBLICATION watchtide SET TABLE items", errChanged.Error()},
		"secured":   {"ALTER TABLE items ENABLE ROW LEVEL SECURITY", "ALTER TABLE items DISABLE ROW LEVEL SECURITY", "BYPASSRLS"},
		"unkeyed":   {"ALTER TABLE items REPLICA IDENTITY NOTHING", "ALTER TABLE items REPLICA IDENTITY DEFAULT", "REPLICA IDENTITY DEFAULT"},
		"publishes": {"ALTER PUBLICATION watchtide SET (publish = 'insert')", "ALTER PUBLICATION watchtide SET (publish = 'insert, update, delete, truncate')", "SET (publish"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, s)
			if name == "filtered" {
				d.skipBefore(15, "a row filter")
			}
			d.exec(put("a", item("a", "1")))
			source := d.source(s.Addr(), Table{Name: "items"})
			f := follow(t, source, nil)
			f.awaitValue("a", item("a", "1"))
			d.exec(c.change)
			f.mustEnd(c.want)
			d.exec(c.back)
			if name == "filtered" {
				d.exec("SELECT 1")
			}
			d.exec(put("c", item("c", "3")))
			next := follow(t, source, f)
			next.awaitValue("c", item("c", "3"))
			next.awaitValue("a", item("a", "1"))
		})
	}
}

// TestAlteredTable: a new column comes with the next row; a column of another type has the table read
// again.
func TestAlteredTable(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec(put("a", item("a", "1")))
	source := d.source(d.server.Addr(), Table{Name: "items"})
	f := follow(t, source, nil)
	f.awaitValue("a", item("a", "1"))
	d.exec("ALTER TABLE items ADD n int8 DEFAULT 7; INSERT INTO items VALUES ('b', '2')")
	f.awaitValue("b", `{"id":"b","value":2,"n":7}`)
	f.awaitValue("a", item("a", "1"))
	d.exec("ALTER TABLE items ALTER n TYPE text; INSERT INTO items VALUES ('c', '3')")
	f.mustEnd(errChanged.Error())
	next := follow(t, source, f)
	next.awaitValue("b", `{"id":"b","value":2,"n":"7"}`)
	next.awaitValue("c", `{"id":"c","value":3,"n":"7"}`)
}

// TestLostConnection: after it, rows that have not changed keep their revision.
func TestLostConnection(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	for _, key := range []string{"a", "b", "c"} {
		d.exec(put(key, item(key, "1")))
	}
	proxy := realserver.NewProxy(t, d.server.Addr())
	source := d.source(proxy.Addr(), Table{Name: "items"})
	f := follow(t, source, nil)
	f.awaitValue("c", item("c", "1"))
	d.exec(put("d", item("d", "1")))
	f.awaitValue("d", item("d", "1"))
	proxy.Cut()
	<-f.ended
	d.exec(put("b", item("b", "2")) + ";" + remove("c"))
	next := follow(t, source, f)
	next.awaitValue("b", item("b", "2"))
	before, after := f.State(), next.State()
	if before["a"] != after["a"] || before["d"] != after["d"] || before["b"].Revision >= after["b"].Revision {
		t.Errorf("after a lost connection there is %v, before it was %v", after, before)
	}
}

// TestOneSlot: all watches of a source share one temporary slot, which is gone with the last of them.
func TestOneSlot(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.table("others (id text PRIMARY KEY, value json)")
	u := d.upstream(d.server.Addr())
	var all []*followed
	for _, name := range []string{"items", "others", "items"} {
		source, err := u.Source(Table{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, source, nil)
		f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
		all = append(all, f)
	}
	d.exec("BEGIN; INSERT INTO items VALUES ('a', '1'); INSERT INTO others VALUES ('a', '1'); COMMIT")
	var revisions []uint64
	for _, f := range all {
		f.awaitValue("a", item("a", "1"))
		revisions = append(revisions, f.State()["a"].Revision)
	}
	slots := func() string {
		return d.query("SELECT count(*) || ' ' || coalesce(bool_and(temporary)::text, '') FROM pg_replication_slots WHERE database = " + literal(d.name))
	}
	// The slot of the last snapshot ends a moment later.
	for late := time.Now().Add(10 * time.Second); slots() != "1 true"; {
		if time.Now().After(late) {
			t.Fatalf("slots: %s, want one that is temporary", slots())
		}
	}
	if revisions[0] != revisions[1] || revisions[0] != revisions[2] {
		t.Errorf("one transaction has the revisions %d", revisions)
	}
	for _, f := range all {
		f.stop()
	}
	for late := time.Now().Add(10 * time.Second); slots() != "0 "; {
		if time.Now().After(late) {
			t.Fatalf("slots: %s after the last watch has ended", slots())
		}
	}
}

// TestQuietTableHoldsNoWAL: the server may forget what others write, and positions move on.
func TestQuietTableHoldsNoWAL(t *testing.T) {
	d := newDatabase(t, realserver.StartPostgres(t, "wal_sender_timeout=0"))
	d.exec("CREATE TABLE noise (t text)")
	f := d.follow(Table{Name: "items"})
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	d.exec("INSERT INTO noise SELECT repeat('x', 100) FROM generate_series(1, 10000)")
	at := d.query("SELECT pg_current_wal_lsn() - '0/0'")
	d.exec("INSERT INTO noise VALUES ('x')") // the server has written everything before
	want, err := strconv.ParseUint(at, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	f.await("progress beyond "+at, func() bool {
		commits := f.Commits()
		return commits[len(commits)-1].Revision >= want
	})
	for late := time.Now().Add(10 * time.Second); ; {
		if d.query("SELECT bool_and(confirmed_flush_lsn - '0/0' >= "+at+") FROM pg_replication_slots") == "t" {
			return
		}
		if time.Now().After(late) {
			t.Fatal("the slot keeps what nobody needs")
		}
	}
}

// TestPartitions: the rows of a root are those of its partitions, whichever they are.
func TestPartitions(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec(`CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
		CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10); CREATE TABLE parts2 (v text, id int PRIMARY KEY);
		ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (10) TO (20);
		GRANT SELECT ON parts, parts1, parts2 TO wt`)
	d.exec("ALTER PUBLICATION watchtide ADD TABLE parts")
	d.exec("INSERT INTO parts VALUES (1, 'a'), (11, 'b')")
	source := d.source(d.server.Addr(), Table{Name: "parts"})
	f := follow(t, source, nil)
	f.awaitValue("11", `{"id":11,"v":"b"}`)
	d.exec("INSERT INTO parts VALUES (12, 'c'); UPDATE parts SET id = 13 WHERE id = 1")
	f.awaitValue("13", `{"id":13,"v":"a"}`)
	f.awaitValue("1", "")
	d.exec("INSERT INTO parts VALUES (2, 'd'); TRUNCATE parts2")
	f.awaitValue("2", `{"id":2,"v":"d"}`)
	f.awaitValue("11", "")
	d.exec("CREATE TABLE parts3 PARTITION OF parts FOR VALUES FROM (20) TO (30); INSERT INTO parts VALUES (21, 'e')")
	f.mustEnd(errChanged.Error())
	f2 := follow(t, source, f)
	f2.awaitValue("21", `{"id":21,"v":"e"}`)
	d.exec("ALTER TABLE parts DETACH PARTITION parts1")
	f2.mustEnd(errChanged.Error())
	f3 := follow(t, source, f2)
	f3.awaitValue("2", "")
	f3.awaitValue("21", `{"id":21,"v":"e"}`)
	d.exec("UPDATE parts1 SET v = 'detached'")
	d.exec("ALTER TABLE parts ATTACH PARTITION parts1 FOR VALUES FROM (0) TO (10)")
	f3.mustEnd(errChanged.Error())
	f4 := follow(t, source, f3)
	f4.awaitValue("2", `{"id":2,"v":"detached"}`)
	f4.awaitValue("21", `{"id":21,"v":"e"}`)
	d.exec("TRUNCATE parts1")
	f4.awaitValue("2", "")
}

// TestRowFilter: the snapshot has the rows that the publication has.
func TestRowFilter(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.skipBefore(15, "a row filter")
	d.exec("CREATE TABLE filtered (id int PRIMARY KEY, v text); GRANT SELECT ON filtered TO wt; ALTER PUBLICATION watchtide ADD TABLE filtered WHERE (id > 10)")
	d.exec("INSERT INTO filtered VALUES (1, 'a'), (11, 'b')")
	f := d.follow(Table{Name: "filtered"})
	f.awaitValue("11", `{"id":11,"v":"b"}`)
	f.awaitValue("1", "")
	d.exec("UPDATE filtered SET id = 12 WHERE id = 1")
	f.awaitValue("12", `{"id":12,"v":"a"}`)
	d.exec("UPDATE filtered SET id = 2 WHERE id = 11")
	f.awaitValue("11", "")
}

// TestChangesWhileItIsRead: nothing is lost or shown twice of what happens while a table is read.
func TestChangesWhileItIsRead(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	const rows = 3000 // the recorder copies them all at each commit
	d.exec(fmt.Sprintf("INSERT INTO items SELECT i, to_json(repeat('x', 1000)) FROM generate_series(1, %d) i", rows))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan int, 1)
	go func() {
		n := 0
		for ; ctx.Err() == nil && n < rows; n++ {
			if err := d.try(put(fmt.Sprint("w", n%50), item("", fmt.Sprint(n)))); err != nil {
				t.Error(err)
			}
			if err := d.try(remove(fmt.Sprint(n + 1))); err != nil {
				t.Error(err)
			}
		}
		done <- n
	}()
	for range 5 {
		f := d.follow(Table{Name: "items"})
		f.await("a snapshot", func() bool { return len(f.Commits()) > 1 })
		f.stop()
	}
	f := d.follow(Table{Name: "items"})
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	stop()
	n := <-done
	d.exec(put("end", item("end", "1")))
	f.awaitValue("end", item("end", "1"))
	if got, want := len(f.State()), rows-n+min(n, 50)+1; got != want {
		t.Errorf("there are %d resources after %d writes, want %d", got, n, want)
	}
	last := fmt.Sprint("w", (n-1)%50)
	f.awaitValue(last, item(last, fmt.Sprint(n-1)))
}

// TestStalledServer: a server that is connected and says nothing is given up.
func TestStalledServer(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	proxy := realserver.NewProxy(t, d.server.Addr())
	source := d.source(proxy.Addr(), Table{Name: "items"})
	f := follow(t, source, nil)
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	proxy.Stall()
	f.mustEnd("no answer within 2s")
	if !errors.Is(f.err, stream.ErrStalled) {
		t.Errorf("error %v, want one that wraps %v", f.err, stream.ErrStalled)
	}
	proxy.Heal()
}

// TestSmallRowsOutOfLine: values are kept only of rows that may have parts that are stored out of line. One that
// has, although its text is short, has the table read again, once.
func TestSmallRowsOutOfLine(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.table("small (id int PRIMARY KEY, list int8[], n int)")
	d.exec("ALTER TABLE small ALTER list SET STORAGE EXTERNAL")
	d.exec("INSERT INTO small VALUES (1, '{}', 0)")
	source := d.source(d.server.Addr(), Table{Name: "small"})
	f := follow(t, source, nil)
	value := func(id, ones, n int) string {
		return fmt.Sprintf(`{"id":%d,"list":"{%s}","n":%d}`, id, strings.TrimSuffix(strings.Repeat("1,", ones), ","), n)
	}
	f.awaitValue("1", value(1, 0, 0))
	d.exec("UPDATE small SET n = 1")
	f.awaitValue("1", value(1, 0, 1))
	d.exec("INSERT INTO small SELECT 2, array_agg(1), 0 FROM generate_series(1, 400)")
	f.awaitValue("2", value(2, 400, 0))
	if n := len(snapshotsOf(f)); n != 1 {
		t.Fatalf("the table was read %d times, want once", n)
	}
	d.exec("UPDATE small SET n = n + 1")
	f.mustEnd(errLarge.Error())
	for _, r := range source.rows {
		if r.value != nil {
			t.Errorf("the value %s is kept", r.value)
		}
	}
	next := follow(t, source, f)
	next.awaitValue("2", value(2, 400, 1))
	next.awaitValue("1", value(1, 0, 2))
	d.exec("UPDATE small SET n = 9; UPDATE small SET id = 3 WHERE id = 2")
	next.awaitValue("3", value(3, 400, 9))
	next.awaitValue("1", value(1, 0, 9))
}

// snapshotsOf returns the commits of a whole table.
func snapshotsOf(f *followed) (all []streamtest.CommitRecord) {
	for _, c := range f.Commits() {
		if c.Snapshot {
			all = append(all, c)
		}
	}
	return all
}
