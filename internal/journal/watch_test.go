package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/source/files"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// lister is an upstream that cannot resume: each connection begins with a snapshot.
type lister struct {
	epoch    string
	revision uint64
	all      []stream.Resource
	err      error // of each connection
	resumes  []stream.Resume
}

func (l *lister) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	l.resumes = append(l.resumes, resume)
	if l.err != nil {
		return l.err
	}
	if err := sink.Reset(l.epoch); err != nil {
		return err
	}
	for _, r := range l.all {
		if err := sink.Upsert(r); err != nil {
			return err
		}
	}
	if err := sink.Commit(l.revision); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// process is one that follows an upstream.
type process struct {
	t        *testing.T
	journal  *Journal
	registry *watch.Registry
	watch    *watch.Watch
}

func run(t *testing.T, dir string, source stream.Source) *process {
	t.Helper()
	j, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, journal: j, registry: watch.NewRegistry()}
	if p.watch, err = p.registry.Add(watch.Config{
		Name: "w", Source: source, Journal: j.Watch("w", "s"), BehindTimeout: time.Nanosecond, Backoff: watch.Backoff{Min: time.Millisecond, Max: time.Millisecond},
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// await waits until the watch has a state.
func (p *process) await(state stream.State, what func(log.Snapshot) bool) log.Snapshot {
	p.t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		changed, now := p.watch.Changed(), p.watch.Snapshot()
		if now.Status().State == state && what(now) {
			return now
		}
		select {
		case <-changed:
		case <-deadline:
			p.t.Fatalf("the watch is %s at %d with %d resources: %s", now.Status().State, now.Revision(), now.Count(), now.Status().Full())
		}
	}
}

func at(revision uint64) func(log.Snapshot) bool {
	return func(s log.Snapshot) bool { return s.Revision() == revision }
}

func (p *process) end() {
	p.registry.Close()
	p.journal.Close()
}

func (p *process) kill() {
	close(p.journal.stop)
	<-p.journal.ended
	_ = p.journal.file.Close()
	p.registry.Close()
}

func (p *process) outcome(position stream.Position) (log.ResumeOutcome, []string) {
	s := p.watch.Subscribe(log.SubscribeOptions{Resume: &position})
	return s.Outcome(), append(next(s), string(s.Outcome()))
}

// TestUpstreamThatCannotResume: the watch is there at once, stale, and goes on with the difference.
func TestUpstreamThatCannotResume(t *testing.T) {
	dir := tempDir(t)
	p := run(t, dir, &lister{epoch: "e", revision: 5, all: []stream.Resource{upsert("a", 2), upsert("b", 5)}})
	position := p.await(stream.InSync, at(5)).Position()
	p.end()

	down := &lister{err: errors.New("refused")}
	p = run(t, dir, down)
	p.await(stream.Stale, at(5))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[exact]" {
		t.Errorf("while the upstream is down: %s", got)
	}
	p.end()

	back := &lister{epoch: "e", revision: 9, all: []stream.Resource{upsert("a", 2), upsert("c", 8)}}
	p = run(t, dir, back)
	p.await(stream.InSync, at(9))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[delete b@9 upsert c@8 exact]" {
		t.Errorf("after the snapshot: %s", got)
	}
	if resume := back.resumes[0]; resume != (stream.Resume{}) {
		t.Errorf("the source was asked to resume %v, of which it knows nothing", resume)
	}
	p.end()
}

// doubtful is an upstream that says that it is stale, and then has a change.
type doubtful struct{ change time.Time }

func (d *doubtful) Watch(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	if !d.change.IsZero() {
		return errors.New("refused")
	}
	if err := errors.Join(sink.Reset("e"), sink.Commit(5), sink.Status(stream.Stale, "says the upstream")); err != nil {
		return err
	}
	for d.change = time.Now(); !time.Now().After(d.change); {
	}
	if err := errors.Join(sink.Upsert(upsert("a", 6)), sink.Commit(6)); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestStaleBefore: what was stale when it was kept is stale since then, and not since the last change.
func TestStaleBefore(t *testing.T) {
	dir, source := tempDir(t), &doubtful{}
	p := run(t, dir, source)
	since := p.await(stream.Stale, at(6)).Status().Since
	p.end()
	p = run(t, dir, source)
	if got := p.await(stream.Stale, at(6)).Status(); !got.Since.Equal(since) {
		t.Errorf("stale since %s, want %s; the change was at %s", got.Since, since, source.change)
	}
	p.end()
}

// TestKilledProcess: what was kept is served only if the upstream is down, and nobody resumes from it.
func TestKilledProcess(t *testing.T) {
	dir := tempDir(t)
	first := &lister{epoch: "e", revision: 5, all: []stream.Resource{upsert("a", 2)}}
	p := run(t, dir, first)
	position := p.await(stream.InSync, at(5)).Position()
	p.journal.flush()
	p.kill()

	p = run(t, dir, &lister{err: errors.New("refused")})
	p.await(stream.Stale, at(5))
	if outcome, got := p.outcome(position); fmt.Sprint(got) != "[upsert a@2 expired]" {
		t.Errorf("while the upstream is down: %s, %s", outcome, got)
	}
	p.kill()

	p = run(t, dir, &lister{epoch: "e", revision: 9, all: []stream.Resource{upsert("a", 2)}})
	p.await(stream.InSync, at(9))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[upsert a@2 expired]" {
		t.Errorf("after the snapshot: %s", got)
	}
	p.end()
}

// TestOrderWithoutAName: the name that the log gave to an order of the source outlives the process.
func TestOrderWithoutAName(t *testing.T) {
	dir := tempDir(t)
	p := run(t, dir, &lister{epoch: "e", revision: 50, all: []stream.Resource{upsert("a", 20)}})
	p.await(stream.InSync, at(50))
	p.end()
	restored := &lister{epoch: "e", revision: 7, all: []stream.Resource{upsert("a", 6)}}
	p = run(t, dir, restored)
	position := p.await(stream.InSync, at(7)).Position()
	if !strings.HasPrefix(position.Epoch, "e~") {
		t.Fatalf("the epoch is %s", position.Epoch)
	}
	p.end()
	restored.revision = 9
	p = run(t, dir, restored)
	p.await(stream.InSync, at(9))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[exact]" {
		t.Errorf("then: %s", got)
	}
	p.end()
}

// TestSourceThatCounts goes on with its revisions after an orderly end, and begins another order after a kill.
func TestSourceThatCounts(t *testing.T) {
	dir, folder := tempDir(t), tempDir(t)
	source := func() stream.Source {
		s, err := files.New(files.Config{Dir: folder})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write(t, folder, "a", 1)
	write(t, folder, "b", 1)
	p := run(t, dir, source())
	first := p.await(stream.InSync, func(s log.Snapshot) bool { return s.Count() == 2 })
	position := first.Position()
	position.Run = 0 // no other process has this order
	p.end()
	remove(t, folder, "b")
	p = run(t, dir, source())
	second := p.await(stream.InSync, func(s log.Snapshot) bool { return s.Count() == 1 })
	if _, got := p.outcome(position); second.Epoch() != first.Epoch() || fmt.Sprint(got) != fmt.Sprintf("[delete b@%d exact]", first.Revision()+1) {
		t.Errorf("after an orderly end: %s", got)
	}
	p.kill()
	write(t, folder, "c", 1)
	p = run(t, dir, source())
	third := p.await(stream.InSync, func(s log.Snapshot) bool { return s.Count() == 2 })
	if third.Epoch() == first.Epoch() {
		t.Errorf("the order goes on after a kill, with revision %d", third.Revision())
	}
	p.end()
}

// TestFullDisk: the journal ends, and the watch goes on.
func TestFullDisk(t *testing.T) {
	dir := tempDir(t)
	var logged bytes.Buffer
	j, err := Open(Config{Dir: dir, maxBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Journal: j, logged: &logged}
	r.begin("s")
	r.replace(t, 5, upsert("a", 2))
	r.flush()
	for i := uint64(6); i < 10; i++ {
		large := stream.Resource{Key: "large", Revision: i, Value: fmt.Appendf(nil, "%q", strings.Repeat("x", 200<<10))}
		r.commit(t, i, log.Change{Resource: large})
		r.flush()
	}
	if s := r.Stats(); !s.Failed || !strings.Contains(logged.String(), "a write to the disk has failed") {
		t.Errorf("%+v: %s", s, logged.String())
	}
	if r.log.Snapshot().Count() != 2 {
		t.Error("the watch has not gone on")
	}
	r.end()
	r = start(t, dir, "s")
	if r.kept == watch.KeptWhole {
		t.Error("the next process takes it for whole")
	}
	r.end()
}

// TestLargeWrites: a state of several transactions is whole at the end, and not before. Whichever transaction
// is the last one of a process, the next one has a state that was committed, or it says that it has none.
func TestLargeWrites(t *testing.T) {
	small := TransactionBytes
	defer func() { TransactionBytes = small }()
	TransactionBytes = 1000
	w := &world{dir: tempDir(t)}
	r := &rig{logged: &bytes.Buffer{}}
	var err error
	if r.Journal, err = Open(Config{Dir: w.dir, BeforeCommit: w.note}); err != nil {
		t.Fatal(err)
	}
	r.begin("s")
	opened := w.transactions()
	states := map[uint64]map[string]string{}
	committed := func() { states[r.log.Snapshot().Revision()] = stateOf(r.log.Snapshot()) }
	var all []stream.Resource
	for i := range 100 {
		all = append(all, upsert(fmt.Sprintf("k%03d", i*7%100), 5))
	}
	r.replace(t, 5, all...)
	committed()
	r.flush()
	var changes []log.Change
	for i := range 60 {
		changes = append(changes, log.Change{Resource: upsert(fmt.Sprintf("k%03d", i), 6)}, removed(fmt.Sprintf("k%03d", 99-i%20), 6))
	}
	r.commit(t, 6, changes...)
	committed()
	r.flush()
	r.commit(t, 7, log.Change{Resource: upsert("k000", 7)})
	committed()
	r.end()

	images := append(w.disk, w.see())[opened:]
	found, cut := map[uint64]watch.Kept{}, 0
	for i, image := range images {
		image.put(t, w.path())
		r := start(t, w.dir, "s")
		switch {
		case r.kept != watch.KeptNothing:
			r.recall(t)
			revision := r.log.Snapshot().Revision()
			if got := stateOf(r.log.Snapshot()); !maps.Equal(got, states[revision]) {
				t.Errorf("after %d of %d transactions: %d resources at %d, want %d", i, len(images)-1, len(got), revision, len(states[revision]))
			}
			found[revision] = r.kept
		case strings.Contains(r.logged.String(), "a large state"):
			cut++
		case i > 0:
			t.Errorf("after %d of %d transactions: there is nothing, and the log says %q", i, len(images)-1, r.logged)
		}
		r.kill()
	}
	if want := map[uint64]watch.Kept{5: watch.KeptLost, 6: watch.KeptLost, 7: watch.KeptWhole}; !maps.Equal(found, want) || cut < 20 {
		t.Errorf("states by revision: %v, want %v; %d times there was a part of one", found, want, cut)
	}
}

// TestEndTakesTooLong: the last write of a watch is broken off between two transactions when its time is over.
// What the file has then is not whole.
func TestEndTakesTooLong(t *testing.T) {
	small := TransactionBytes
	defer func() { TransactionBytes = small }()
	TransactionBytes = 1000
	dir := tempDir(t)
	var last *part // that is written
	more := 3      // transactions, before its time is over
	r := &rig{logged: &bytes.Buffer{}}
	var err error
	if r.Journal, err = Open(Config{Dir: dir, BeforeCommit: func() error {
		if more--; last != nil && more == 0 {
			last.ends = time.Now()
		}
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	r.begin("s")
	r.mu.Lock()
	r.replace(t, 1)
	for i := range uint64(100) {
		r.commit(t, i+2, log.Change{Resource: upsert(fmt.Sprint("k", i), i+2)})
	}
	last, more = r.watch.newest(), 3
	last.ends = time.Now().Add(time.Hour)
	r.writeLarge(last)
	if more != 0 {
		t.Errorf("%d transactions after the time was over", -more)
	}
	r.mu.Unlock()
	r.kill()
	if r = start(t, dir, "s"); r.kept != watch.KeptNothing || !strings.Contains(r.logged.String(), "a large state") {
		t.Errorf("%v: %s", r.kept, r.logged)
	}
	r.end()
}

// TestWhileCommitting: what is written beside a log that changes is, at the end, the log.
func TestWhileCommitting(t *testing.T) {
	small := TransactionBytes
	defer func() { TransactionBytes = small }()
	TransactionBytes = 20_000
	dir := tempDir(t)
	r := start(t, dir, "s")
	r.replace(t, 5, upsert("a", 2))
	for i := uint64(6); i < 3000; i++ {
		c := log.Change{Resource: upsert(fmt.Sprint("k", i%97), i)}
		if i%5 == 0 {
			c = removed(fmt.Sprint("k", i%89), i)
		}
		r.commit(t, i, c)
		if i%700 == 0 {
			r.flush() // as if its time had come, beside the other goroutine
		}
	}
	want := stateOf(r.log.Snapshot())
	r.end()
	r = start(t, dir, "s")
	r.recall(t)
	if got := stateOf(r.log.Snapshot()); !maps.Equal(got, want) {
		t.Errorf("%d resources, want %d", len(got), len(want))
	}
	r.end()
}
