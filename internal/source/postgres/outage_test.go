//go:build servers

package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestAnotherTimeline: a server that was promoted, as at the end of a recovery, has another order of
// revisions.
func TestAnotherTimeline(t *testing.T) {
	s := realserver.StartPostgres(t, "restore_command=false")
	d := newDatabase(t, s)
	d.exec(put("a", item("a", "1")))
	source := d.source(s.Addr(), Table{Name: "items"})
	f := follow(t, source, nil)
	f.awaitValue("a", item("a", "1"))
	dir := d.query("SHOW data_directory")
	if err := os.WriteFile(filepath.Join(dir, "recovery.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	<-f.ended
	for d.query("SELECT pg_is_in_recovery()") == "t" {
		<-time.After(10 * time.Millisecond)
	}
	d.exec(put("b", item("b", "2")))
	if got := d.query("SELECT timeline_id FROM pg_control_checkpoint()"); got != "2" {
		t.Fatalf("the timeline is %s, want 2", got)
	}
	next := follow(t, source, f)
	next.awaitValue("b", item("b", "2"))
	next.awaitValue("a", item("a", "1"))
	if before, after := f.Resume().Epoch, next.Resume().Epoch; before == after {
		t.Errorf("epoch %q on both timelines", after)
	}
}

// TestStandbyIsRefused: it would have to be asked for what only the primary has.
func TestStandbyIsRefused(t *testing.T) {
	s := realserver.StartPostgres(t, "restore_command=false", "hot_standby=on")
	d := newDatabase(t, s)
	dir := d.query("SHOW data_directory")
	if err := os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	d.query("SELECT 1")
	d.follow(Table{Name: "items"}).mustEnd("is a standby: want the primary")
}

// awaitPrimary waits until a server accepts writes.
func (d *database) awaitPrimary() {
	d.t.Helper()
	for late := time.Now().Add(20 * time.Second); d.query("SELECT pg_is_in_recovery()") != "f"; {
		if time.Now().After(late) {
			d.t.Fatal("the server stays in recovery")
		}
	}
}

// at returns the database on another server.
func (d *database) at(s *realserver.Server) *database {
	other := &database{t: d.t, server: s, name: d.name, admin: "postgres://postgres@" + s.Addr() + "/" + d.name + "?sslmode=disable"}
	d.t.Cleanup(other.close)
	return other
}

// TestPromotedStandby: the primary is lost, and a standby is promoted. Subscribers get what it has, in
// another order of revisions.
func TestPromotedStandby(t *testing.T) {
	for name, slot := range map[string]string{"temporary": "", "permanent": "mine"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := realserver.StartPostgres(t)
			d := newDatabase(t, primary)
			d.exec(put("a", item("a", "1")))
			standby := d.at(realserver.CopyPostgres(t, primary, true).Start(t))
			address := strings.Join([]string{primary.Addr(), standby.server.Addr()}, ",")
			source := sourceOf(t, d.upstream(address, permanent(slot), func(c *Config) { c.URL += "&target_session_attrs=read-write" }), "items")
			f := follow(t, source, nil)
			d.exec(put("b", item("b", "1")))
			f.awaitValue("b", item("b", "1"))
			for late := time.Now().Add(20 * time.Second); standby.query("SELECT count(*) FROM items") != "2"; {
				if time.Now().After(late) {
					t.Fatal("the standby does not follow")
				}
			}
			primary.Kill()
			<-f.ended
			follow(t, source, f).mustEnd("postgres ")
			standby.exec("SELECT pg_promote()")
			standby.awaitPrimary()
			standby.exec(put("a", item("a", "2")))
			next := follow(t, source, f)
			next.awaitValue("a", item("a", "2"))
			next.awaitValue("b", item("b", "1"))
			if before, after := f.Resume().Epoch, next.Resume().Epoch; before == after {
				t.Errorf("epoch %q on both servers", after)
			}
		})
	}
}

// TestRestoredBackup: the server is replaced with a restored backup, which lacks what came after it.
func TestRestoredBackup(t *testing.T) {
	for name, slot := range map[string]string{"temporary": "", "permanent": "mine"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := realserver.StartPostgres(t)
			d := newDatabase(t, s)
			d.exec(put("a", item("a", "1")))
			proxy := realserver.NewProxy(t, s.Addr())
			source := sourceOf(t, d.upstream(proxy.Addr(), permanent(slot)), "items")
			f := follow(t, source, nil)
			f.awaitValue("a", item("a", "1"))
			backup := realserver.CopyPostgres(t, s, false)
			d.exec(put("a", item("a", "2")) + ";" + put("b", item("b", "1")))
			f.awaitValue("b", item("b", "1"))
			s.Kill()
			<-f.ended
			restored := d.at(backup.Start(t))
			restored.awaitPrimary()
			restored.exec(put("c", item("c", "1")))
			proxy.SetTarget(restored.server.Addr())
			next := follow(t, source, f)
			next.awaitValue("c", item("c", "1"))
			next.awaitValue("a", item("a", "1"))
			next.awaitValue("b", "")
			if before, after := f.Resume().Epoch, next.Resume().Epoch; before == after {
				t.Errorf("epoch %q before and after", after)
			}
		})
	}
}

// awaitWatch waits until something holds of a watch.
func awaitWatch(t *testing.T, w *watch.Watch, what string, holds func() bool) {
	t.Helper()
	late := time.After(60 * time.Second)
	for !holds() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			t.Fatalf("not in time: %s; it is %+v, %+v", what, w.Status(), w.Upstream())
		}
	}
}

// TestTransactionThatDoesNotFit: a transaction beyond the memory of the watch makes it stale, and takes
// no memory. When the table fits again, it is read again.
func TestTransactionThatDoesNotFit(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec(put("a", item("a", "1")))
	registry := watch.NewRegistry()
	defer registry.Close()
	w, err := registry.Add(watch.Config{Name: "items", SourceName: "db", Source: d.source(d.server.Addr(), Table{Name: "items"}), MaxBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	awaitWatch(t, w, "in sync", func() bool { return w.Status().State == stream.InSync })
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rows := 1_000_000
	if testing.Short() {
		rows = 300_000
	}
	d.exec("BEGIN")
	for part := range 10 {
		d.exec(fmt.Sprintf("INSERT INTO items SELECT 'k%d.' || i, to_json(repeat('x', 300)) FROM generate_series(1, %d) i", part, rows/10))
	}
	d.exec("COMMIT")
	awaitWatch(t, w, "stale", func() bool { return w.Status().State == stream.Stale })
	awaitWatch(t, w, "refused for its memory", func() bool { return w.Stats().Reconnects["memory"] > 0 })
	runtime.GC()
	runtime.ReadMemStats(&now)
	grown := int64(now.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d rows, and the process holds %d MB more", rows, grown>>20)
	if grown > 64<<20 {
		t.Errorf("the process holds %d MB more", grown>>20)
	}
	d.exec("DELETE FROM items WHERE id LIKE 'k%'")
	d.exec(put("b", item("b", "2")))
	awaitWatch(t, w, "in sync with the new row", func() bool {
		return w.Status().State == stream.InSync && w.Snapshot().Count() == 2
	})
}

// TestSubscribersSeeTheDifference: a stream that is open when the connection is lost is sent what has
// changed, and no reset.
func TestSubscribersSeeTheDifference(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec("INSERT INTO items SELECT i, '1' FROM generate_series(1, 100) i")
	proxy := realserver.NewProxy(t, d.server.Addr())
	registry := watch.NewRegistry()
	defer registry.Close()
	w, err := registry.Add(watch.Config{Name: "items", SourceName: "db", Source: d.source(proxy.Addr(), Table{Name: "items"})})
	if err != nil {
		t.Fatal(err)
	}
	// The state is published with the data, and counted after it.
	awaitWatch(t, w, "a snapshot that is counted", func() bool { return w.Stats().Resyncs["initial"] == 1 })
	before := w.Stats()
	proxy.Refuse()
	proxy.Cut()
	d.exec(put("7", item("7", "2")) + ";" + remove("8") + ";" + put("new", item("new", "3")))
	proxy.Heal()
	awaitWatch(t, w, "in sync again", func() bool { return w.Stats().Resyncs["reconnect"] == 1 })
	after := w.Stats()
	upserts, deletes := after.Events["upsert"]-before.Events["upsert"], after.Events["delete"]-before.Events["delete"]
	if upserts != 2 || deletes != 1 || after.Resyncs["epoch_changed"] != 0 || w.Snapshot().Count() != 100 {
		t.Errorf("%d upserts and %d deletes, want 2 and 1; %d resources, resyncs %v", upserts, deletes, w.Snapshot().Count(), after.Resyncs)
	}
}

// TestOlderTransaction: the server makes no slot while a transaction is open that has written something.
func TestOlderTransaction(t *testing.T) {
	d := newDatabase(t, realserver.StartPostgres(t))
	other := &database{t: t, server: d.server, admin: d.admin}
	defer other.close()
	other.exec("BEGIN")
	other.exec(put("a", item("a", "1")))
	u := d.upstream(d.server.Addr(), func(c *Config) { c.slotTimeout = 300 * time.Millisecond })
	source, err := u.Source(Table{Name: "items"})
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, source, nil)
	f.mustEnd("waits for older transactions to end")
	other.exec("COMMIT")
	follow(t, source, nil).awaitValue("a", item("a", "1"))
}

// TestReaderLostWhileItReads: nothing of a table is shown that was read in part.
func TestReaderLostWhileItReads(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec("INSERT INTO items SELECT i, to_json(repeat('x', 1000)) FROM generate_series(1, 20000) i")
	proxy := realserver.NewProxy(t, d.server.Addr())
	source := d.source(proxy.Addr(), Table{Name: "items"})
	proxy.Trickle(200_000)
	f := follow(t, source, nil)
	for d.query("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = "+literal(d.name)+" AND query LIKE 'SELECT tableoid%'") == "0" {
		<-time.After(10 * time.Millisecond)
	}
	proxy.Heal()
	f.mustEnd("postgres ")
	if n := len(f.Commits()); n != 0 {
		t.Errorf("%d commits of a table that was read in part", n)
	}
	next := follow(t, source, nil)
	next.await("all rows", func() bool { return len(next.State()) == 20000 })
}

// TestContinue: a process that has what another one had keeps the revisions of rows that have not changed.
func TestContinue(t *testing.T) {
	d := newDatabase(t, realserver.SharedPostgres(t))
	d.exec(put("a", item("a", "1")) + ";" + put("b", item("b", "1")))
	f := d.follow(Table{Name: "items"})
	f.awaitValue("b", item("b", "1"))
	f.stop()
	d.exec(put("b", item("b", "2")))
	source := d.source(d.server.Addr(), Table{Name: "items"})
	source.Continue(f.Resume(), func(yield func(stream.Resource) bool) {
		for key := range f.State() {
			if !yield(stream.Resource{Key: key, Revision: f.State()[key].Revision, Value: []byte(item(key, "1"))}) {
				return
			}
		}
	})
	next := follow(t, source, f)
	next.awaitValue("b", item("b", "2"))
	if before, after := f.State()["a"], next.State()["a"]; before != after {
		t.Errorf("the row that has not changed was %v and is %v", before, after)
	}
}

// TestSlotInvalidated: the server takes the slot away from a gateway that is too slow, since it may keep
// no more WAL. Nothing is lost.
func TestSlotInvalidated(t *testing.T) {
	d := newDatabase(t, realserver.StartPostgres(t, "max_slot_wal_keep_size=1MB", "min_wal_size=32MB", "max_wal_size=32MB"))
	d.exec("CREATE TABLE noise (t text)")
	d.exec(put("a", item("a", "1")))
	proxy := realserver.NewProxy(t, d.server.Addr())
	u := d.upstream(proxy.Addr(), func(c *Config) { c.StallAfter = 30 * time.Second })
	source, err := u.Source(Table{Name: "items"})
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, source, nil)
	f.awaitValue("a", item("a", "1"))
	proxy.Stall()
	active := func() string { return d.query("SELECT count(*) FROM pg_replication_slots WHERE active") }
	for late := time.Now().Add(20 * time.Second); active() != "0"; {
		d.exec("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
		d.exec("CHECKPOINT")
		if time.Now().After(late) {
			t.Fatal("the server keeps the slot")
		}
	}
	d.exec(put("b", item("b", "2")) + ";" + remove("a"))
	proxy.Heal()
	f.mustEnd("postgres ")
	next := follow(t, source, f)
	next.awaitValue("b", item("b", "2"))
	next.awaitValue("a", "")
}
