//go:build servers

package postgres

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/journal"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// permanent has a source use a permanent slot.
func permanent(name string) func(*Config) { return func(c *Config) { c.Slot = name } }

// sourceOf returns a source of a table of an upstream.
func sourceOf(t testing.TB, u *Upstream, table string) *Source {
	t.Helper()
	s, err := u.Source(Table{Name: table})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// saysInSync reports whether the source has said that it has caught up.
func (f *followed) saysInSync() bool {
	return slices.ContainsFunc(f.Statuses(), func(s stream.Status) bool { return s.State == stream.InSync })
}

// slotName returns a name for a slot that no other test uses.
func (d *database) slotName() string { return "gateway_" + d.name }

// awaitConfirmed waits until the server has been told that what exists now is safe.
func (d *database) awaitConfirmed(slot string) {
	d.t.Helper()
	at := d.query("SELECT pg_current_wal_lsn()")
	for late := time.Now().Add(20 * time.Second); d.query("SELECT coalesce(bool_and(confirmed_flush_lsn >= "+literal(at)+"), false) FROM pg_replication_slots WHERE slot_name = "+literal(slot)) != "t"; {
		if time.Now().After(late) {
			d.t.Fatalf("the slot %s is not confirmed up to %s", slot, at)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestPermanentSlotGoesOn: after a lost connection nothing is read again, for all watches of the source.
func TestPermanentSlotGoesOn(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.table("others (id text PRIMARY KEY, value json)")
	d.exec(put("a", item("a", "1")) + ";" + put("b", item("b", "1")))
	proxy := realserver.NewProxy(t, d.server.Addr())
	u := d.upstream(proxy.Addr(), permanent(d.slotName()))
	names := []string{"items", "others"}
	var sources []*Source
	var all []*followed
	for _, name := range names {
		s := sourceOf(t, u, name)
		f := follow(t, s, nil)
		f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
		sources, all = append(sources, s), append(all, f)
	}
	d.exec(put("c", item("c", "1")))
	all[0].awaitValue("c", item("c", "1"))
	for round := range 3 {
		proxy.Refuse()
		proxy.Cut()
		for _, f := range all {
			<-f.ended
		}
		n := fmt.Sprint(round)
		d.exec("BEGIN; " + put("b", item("b", n)) + "; " + remove("a") + "; " + put(n, item(n, "1")) + "; INSERT INTO others VALUES (" + literal(n) + ", '1'); COMMIT")
		proxy.Heal()
		for i, s := range sources {
			all[i] = follow(t, s, all[i])
		}
		for _, f := range all {
			f.awaitValue(n, item(n, "1"))
			f.await("in sync", f.saysInSync)
			if got := len(snapshotsOf(f)); got != 0 {
				t.Fatalf("round %d: the table was read %d times, want not at all", round, got)
			}
		}
		all[0].awaitValue("b", item("b", n))
		all[0].awaitValue("a", "")
	}
	if got := d.query("SELECT count(*) || ' ' || bool_or(temporary)::text FROM pg_replication_slots WHERE database = " + literal(d.name)); got != "1 false" {
		t.Errorf("slots: %s, want one that is permanent", got)
	}
	for _, f := range all {
		f.stop()
	}
	d.dropSlot()
}

// dropSlot drops the permanent slot once its connection has ended.
func (d *database) dropSlot() {
	d.t.Helper()
	for late := time.Now().Add(10 * time.Second); d.try("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = "+literal(d.slotName())) != nil; {
		if time.Now().After(late) {
			d.t.Fatal("the slot stays in use")
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestPermanentSlotReadsAgain: a table is read again if its definition, or what is published of it, has
// changed where the slot goes on, or if the slot does not have everything.
func TestPermanentSlotReadsAgain(t *testing.T) {
	s := realserver.StartPostgres(t)
	for name, change := range map[string]string{
		"type":        "ALTER TABLE items ALTER value TYPE text",
		"rewritten":   "ALTER TABLE items ALTER value TYPE jsonb; ALTER TABLE items ALTER value TYPE json",
		"republished": "ALTER PUBLICATION watchtide DROP TABLE items; INSERT INTO items VALUES ('unseen', '1'); ALTER PUBLICATION watchtide ADD TABLE items",
		"filtered":    "ALTER PUBLICATION watchtide SET TABLE items WHERE (id <> 'a')",
		"dropped":     "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database(); INSERT INTO items VALUES ('x', '1')",
		"advanced":    "INSERT INTO items VALUES ('x', '1'); SELECT pg_replication_slot_advance(slot_name, pg_current_wal_insert_lsn()) FROM pg_replication_slots WHERE database = current_database()",
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, s)
			d.exec(put("a", item("a", "1")))
			if name == "filtered" {
				d.skipBefore(15, "a row filter")
			}
			source := sourceOf(t, d.upstream(s.Addr(), permanent(d.slotName())), "items")
			f := follow(t, source, nil)
			f.awaitValue("a", item("a", "1"))
			d.awaitConfirmed(d.slotName())
			d.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND database = current_database()")
			<-f.ended
			for d.query("SELECT count(*) FROM pg_replication_slots WHERE active AND database = current_database()") != "0" {
				<-time.After(20 * time.Millisecond)
			}
			for statement := range strings.SplitSeq(change, "; ") {
				d.exec(statement)
			}
			next := follow(t, source, f)
			next.await("a snapshot", func() bool { return len(snapshotsOf(next)) == 1 })
			rows := d.query("SELECT count(*) FROM items")
			if name == "filtered" {
				rows = "0"
			}
			if got := strconv.Itoa(len(next.State())); got != rows {
				t.Errorf("%s resources, want %s", got, rows)
			}
			next.stop()
			d.dropSlot()
		})
	}
}

// TestSlotInUse: a gateway does not take the slot of another one.
func TestSlotInUse(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	f := follow(t, sourceOf(t, d.upstream(d.server.Addr(), permanent(d.slotName())), "items"), nil)
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	other := sourceOf(t, d.upstream(d.server.Addr(), permanent(d.slotName())), "items")
	pid := d.query("SELECT active_pid FROM pg_replication_slots WHERE slot_name = " + literal(d.slotName()))
	follow(t, other, nil).mustEnd(fmt.Sprintf("the slot %q is in use by the server process %s: want a slot of its own for each gateway", d.slotName(), pid))
	d.exec(put("a", item("a", "1")))
	f.awaitValue("a", item("a", "1"))
	f.stop()
	d.dropSlot()
}

// TestForeignSlots: a slot that the gateway could not have made is left alone.
func TestForeignSlots(t *testing.T) {
	s := realserver.StartPostgres(t)
	for name, c := range map[string]struct{ before, want string }{
		"physical":         {"SELECT pg_create_physical_replication_slot('taken')", "is not a permanent one of the plugin pgoutput"},
		"another database": {"SELECT 1", `is of the database "postgres"`},
		"another plugin":   {"SELECT pg_create_logical_replication_slot('taken', 'test_decoding')", "is not a permanent one of the plugin pgoutput"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, s)
			if name == "another database" {
				admin := &database{t: t, server: s, admin: "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable"}
				admin.exec("SELECT pg_create_logical_replication_slot('taken', 'pgoutput')")
				admin.close()
			} else if err := d.try(c.before); err != nil {
				t.Skip(err)
			}
			follow(t, sourceOf(t, d.upstream(s.Addr(), permanent("taken")), "items"), nil).mustEnd(c.want)
			d.exec("SELECT pg_drop_replication_slot('taken')")
		})
	}
	d := newDatabase(t, s)
	u := d.upstream(s.Addr(), permanent(d.slotName()), func(c *Config) { c.Failover = true })
	f := follow(t, sourceOf(t, u, "items"), nil)
	if d.version() < 17 {
		f.mustEnd("want PostgreSQL 17 or newer for failover")
		return
	}
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	if got := d.query("SELECT failover FROM pg_replication_slots WHERE slot_name = " + literal(d.slotName())); got != "t" {
		t.Errorf("the slot fails over: %s", got)
	}
	f.stop()
	d.dropSlot()
}

// TestPermanentSlotLost: the server has removed WAL that the slot needs, and the table is read again.
func TestPermanentSlotLost(t *testing.T) {
	d := newDatabase(t, realserver.StartPostgres(t, "max_slot_wal_keep_size=1MB", "min_wal_size=32MB", "max_wal_size=32MB"))
	d.exec("CREATE TABLE noise (t text)")
	d.exec(put("a", item("a", "1")))
	source := sourceOf(t, d.upstream(d.server.Addr(), permanent("mine")), "items")
	f := follow(t, source, nil)
	f.awaitValue("a", item("a", "1"))
	d.exec(endStream)
	<-f.ended
	for late := time.Now().Add(20 * time.Second); d.query("SELECT wal_status FROM pg_replication_slots") != "lost"; {
		d.exec("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
		d.exec("CHECKPOINT")
		if time.Now().After(late) {
			t.Fatal("the server keeps the slot")
		}
	}
	d.exec(put("b", item("b", "2")) + ";" + remove("a"))
	next := follow(t, source, f)
	next.awaitValue("b", item("b", "2"))
	next.awaitValue("a", "")
	if got := d.query("SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'mine'"); got != "reserved" {
		t.Errorf("the new slot is %s", got)
	}
}

// TestMaxRetainedWAL: the gateway gives a slot up for which the server keeps too much, its own, also a
// temporary one, and that of a gateway that is frozen.
func TestMaxRetainedWAL(t *testing.T) {
	for name, slot := range map[string]string{"permanent": "mine", "temporary": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, realserver.StartPostgres(t))
			d.exec("CREATE TABLE noise (t text)")
			d.exec(put("a", item("a", "1")))
			u := d.upstream(d.server.Addr(), permanent(slot), func(c *Config) { c.MaxRetainedWAL = MinMaxRetainedWAL })
			source := sourceOf(t, u, "items")
			f := follow(t, source, nil)
			f.awaitValue("a", item("a", "1"))
			f.await("a figure", func() bool { bytes, ok := source.RetainedBytes(); return ok && bytes > 0 || len(f.Commits()) < 1 })
			// A transaction that is open has the server keep all WAL since.
			other := &database{t: t, server: d.server, admin: d.admin}
			defer other.close()
			other.exec("BEGIN")
			other.exec("INSERT INTO noise VALUES ('open')")
			d.exec("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 40000)")
			f.mustEnd("and max_retained_wal is 16777216")
			other.exec("COMMIT")
			d.exec(put("b", item("b", "2")))
			next := follow(t, source, f)
			next.awaitValue("b", item("b", "2"))
			if before, after := f.State()["a"], next.State()["a"]; before != after {
				t.Errorf("the row that has not changed was %v and is %v", before, after)
			}
		})
	}
	t.Run("frozen", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t, realserver.StartPostgres(t))
		d.exec("CREATE TABLE noise (t text)")
		proxy := realserver.NewProxy(t, d.server.Addr())
		frozen := follow(t, sourceOf(t, d.upstream(proxy.Addr(), func(c *Config) { c.StallAfter = time.Minute }), "items"), nil)
		frozen.await("a snapshot", func() bool { return len(frozen.Commits()) > 0 })
		proxy.Stall()
		f := follow(t, sourceOf(t, d.upstream(d.server.Addr(), func(c *Config) { c.MaxRetainedWAL = MinMaxRetainedWAL }), "items"), nil)
		f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
		late := time.Now().Add(time.Minute)
		// until repeats something, for which the slots may have to be looked at, or the server to be told what was
		// received.
		until := func(query, want string, again func()) {
			for d.query(query) != want {
				again()
				if time.Now().After(late) {
					t.Fatalf("%s: not %s; slots: %s", query, want, d.query("SELECT string_agg(slot_name || ' ' || pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), ', ') FROM pg_replication_slots"))
				}
			}
		}
		const slots = "SELECT count(*) FROM pg_replication_slots"
		until(slots, "1", func() {
			d.exec("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
			d.exec("CHECKPOINT")
			// The gateway that is not frozen must not have its own slot to give up.
			until("SELECT coalesce(min(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0) < 4000000 FROM pg_replication_slots", "t", func() { d.exec("CHECKPOINT") })
		})
		proxy.Heal()
		frozen.mustEnd("postgres ")
		d.exec(put("a", item("a", "1")))
		f.awaitValue("a", item("a", "1"))
	})
}

// TestJournalAndPermanentSlot: a process that is started again goes on from its journal and the slot
// without reading the table; without a journal it reads the table.
func TestJournalAndPermanentSlot(t *testing.T) {
	const (
		partitions = `DROP TABLE items; CREATE TABLE items (id text PRIMARY KEY, value json) PARTITION BY RANGE (id);
			CREATE TABLE items1 PARTITION OF items FOR VALUES FROM ('a') TO ('b'); CREATE TABLE items2 PARTITION OF items FOR VALUES FROM ('b') TO ('z');
			GRANT SELECT ON ALL TABLES IN SCHEMA public TO wt;`
		allTables = "DROP PUBLICATION watchtide; CREATE PUBLICATION watchtide FOR ALL TABLES;"
	)
	for name, c := range map[string]struct {
		before string
		reads  uint64
	}{
		"table":                    {"", 0},
		"all tables":               {allTables, 0},
		"partitions":               {partitions + "ALTER PUBLICATION watchtide ADD TABLE items", 1},
		"partitions of all tables": {partitions + allTables, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, realserver.SharedPostgres(t))
			d.exec(c.before)
			checkJournal(t, d, c.reads)
		})
	}
}

// checkJournal starts a process again, which reads the table so many times.
func checkJournal(t *testing.T, d *database, reads uint64) {
	d.exec(put("a", item("a", "1")) + ";" + put("b", item("b", "1")))
	dir := t.TempDir()
	process := func(journaled bool) (*watch.Watch, func()) {
		c := watch.Config{Name: "items", SourceName: "db", Source: sourceOf(t, d.upstream(d.server.Addr(), permanent(d.slotName())), "items")}
		j := (*journal.Journal)(nil)
		if journaled {
			var err error
			if j, err = journal.Open(journal.Config{Dir: filepath.Join(dir)}); err != nil {
				t.Fatal(err)
			}
			c.Journal = j.Watch("items", "x")
		}
		registry := watch.NewRegistry()
		w, err := registry.Add(c)
		if err != nil {
			t.Fatal(err)
		}
		awaitWatch(t, w, "in sync", func() bool { return w.Status().State == stream.InSync })
		return w, func() { registry.Close(); j.Close() }
	}
	w, end := process(true)
	early := &client{t: t}
	early.visit(w)
	d.awaitConfirmed(d.slotName())
	end()
	d.exec(put("b", item("b", "2")) + ";" + remove("a") + ";" + put("c", item("c", "1")))
	w, end = process(true)
	awaitWatch(t, w, "counted", func() bool { return w.Stats().Resyncs["reconnect"] >= reads })
	if n := w.Stats().Resyncs; n["initial"]+n["epoch_changed"] != 0 || n["reconnect"] != reads {
		t.Errorf("the table was read: %v, want %d times", n, reads)
	}
	outcome := early.visit(w)
	if len(early.holds) != 2 || early.holds["b"] != item("b", "2") || early.holds["c"] != item("c", "1") {
		t.Errorf("the client holds %v", early.holds)
	}
	if outcome != "exact" {
		t.Errorf("the client was answered with %q, want exact", outcome)
	}
	end()
	w, end = process(false)
	awaitWatch(t, w, "counted", func() bool { return w.Stats().Resyncs["initial"] > 0 })
	if n := w.Stats().Resyncs["initial"]; n != 1 {
		t.Errorf("without a journal the table was read %d times, want once", n)
	}
	end()
	d.dropSlot()
}

// TestEstimatedResources: while a table is read, about how many rows it has is known.
func TestEstimatedResources(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec("INSERT INTO items SELECT i, to_json(repeat('x', 1000)) FROM generate_series(1, 5000) i")
	d.exec("ANALYZE items")
	proxy := realserver.NewProxy(t, d.server.Addr())
	source := d.source(proxy.Addr(), Table{Name: "items"})
	proxy.Trickle(500_000)
	f := follow(t, source, nil)
	f.await("an estimate", func() bool { return source.EstimatedResources() == 5000 || len(f.Commits()) > 0 })
	if got := source.EstimatedResources(); got != 5000 {
		t.Errorf("about %d rows, want 5000", got)
	}
	proxy.Heal()
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	f.await("no estimate", func() bool { return source.EstimatedResources() == 0 })
}

// TestOthersDoNotWait: the stream of a permanent slot waits for what may go on, and not for a table that
// cannot be followed.
func TestOthersDoNotWait(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	u := d.upstream(d.server.Addr(), permanent(d.slotName()))
	source := sourceOf(t, u, "items")
	awaited := func(want int) {
		t.Helper()
		u.mu.Lock()
		defer u.mu.Unlock()
		if got := len(u.continuing); got != want {
			t.Errorf("a stream waits for %d sources, want %d", got, want)
		}
	}
	f := follow(t, source, nil)
	f.await("a snapshot", func() bool { return len(f.Commits()) > 0 })
	d.exec("REVOKE SELECT ON items FROM wt")
	f.mustEnd("want GRANT SELECT")
	awaited(1)
	again := follow(t, source, f)
	again.mustEnd("want GRANT SELECT")
	awaited(0)
	d.exec("GRANT SELECT ON items TO wt")
	last := follow(t, source, again)
	d.exec(put("a", item("a", "1")))
	last.awaitValue("a", item("a", "1"))
	last.stop()
	awaited(0)
	d.dropSlot()
}
