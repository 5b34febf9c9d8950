package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/source/files"
	"github.com/watchtide/watchtide/internal/streamtest"
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

// freeze ends all writing: what the file has is as of now.
func (p *process) freeze() {
	p.journal.flush()
	close(p.journal.stop)
	<-p.journal.ended
	_ = p.journal.file.Close()
}

func (p *process) kill() {
	p.freeze()
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
	if resume := back.resumes[0]; resume != (stream.Resume{Epoch: "e", Revision: 5}) {
		t.Errorf("the source was asked to resume at %v", resume)
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

// TestKilledProcess: what was kept is served as stale, and an upstream that cannot resume sends a snapshot. What it
// does not tell of, readers of the process before may have.
func TestKilledProcess(t *testing.T) {
	dir := tempDir(t)
	first := &lister{epoch: "e", revision: 5, all: []stream.Resource{upsert("a", 2)}}
	p := run(t, dir, first)
	position := p.await(stream.InSync, at(5)).Position()
	p.kill()

	p = run(t, dir, &lister{err: errors.New("refused")})
	p.await(stream.Stale, at(5))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[exact]" {
		t.Errorf("while the upstream is down: %s", got)
	}
	p.kill()

	p = run(t, dir, &lister{epoch: "e", revision: 9, all: []stream.Resource{upsert("a", 2)}})
	p.await(stream.InSync, at(9))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[upsert a@2 expired]" {
		t.Errorf("after the snapshot: %s", got)
	}
	p.end()
}

// commit makes one transaction of the upstream.
func commit(u *streamtest.Upstream, writes ...string) {
	var all []streamtest.Write
	for _, key := range writes {
		key, gone := strings.CutPrefix(key, "-")
		all = append(all, streamtest.Write{Key: key, Value: "1", Delete: gone})
	}
	u.Commit(1, all...)
}

// TestUpstreamThatResumes: the next process goes on where the file ends, without a snapshot. Each position of a
// client is exact then, also one that the file does not reach, and one that another replica has issued.
func TestUpstreamThatResumes(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, deletes := range []streamtest.DeleteRevisions{streamtest.OwnRevision, streamtest.NoRevision, streamtest.LastSeen} {
			t.Run(fmt.Sprintf("killed %t, deletes %d", killed, deletes), func(t *testing.T) {
				dir, u := tempDir(t), streamtest.NewUpstream("e", deletes)
				commit(u, "a", "b", "c", "d")
				first := u.Replica()
				p := run(t, dir, first)
				p.await(stream.InSync, at(u.Revision()))
				commit(u, "a") // deletes before are no riddle any more
				first.Catch(-1)
				inFile := p.await(stream.InSync, at(u.Revision())).Position()
				ahead := inFile
				if killed {
					p.freeze()
					commit(u, "e", "-b")
					first.Catch(-1)
					ahead = p.await(stream.InSync, at(u.Revision())).Position()
					p.registry.Close()
				} else {
					p.end()
					commit(u, "e", "-b")
				}
				commit(u, "f", "-c")
				commit(u, "x", "-f")
				commit(u, "-x", "g")

				next := u.Replica()
				next.Refuse(errors.New("refused"))
				p = run(t, dir, next)
				p.await(stream.Stale, at(inFile.AsOf))
				early := p.watch.Subscribe(log.SubscribeOptions{Resume: &ahead, AheadWait: time.Hour})
				defer early.Close()
				got := nextOf(early)
				next.Refuse(nil)
				p.await(stream.InSync, at(u.Revision()))
				state := map[string]bool{}
				for r := range p.watch.Snapshot().Resources() {
					state[r.Key] = true
				}
				if want := map[string]bool{"a": true, "d": true, "e": true, "g": true}; !maps.Equal(state, want) {
					t.Errorf("the watch has %v, want %v", state, want)
				}
				if got = append(got, nextOf(early)...); early.Outcome() != log.OutcomeExact || !slices.Contains(got, "upsert g") || !slices.Contains(got, "delete c") || slices.Contains(got, "upsert e") == killed {
					t.Errorf("who came early, at %s: %s, %q", ahead, early.Outcome(), got)
				}
				for _, of := range []stream.Position{inFile, ahead} {
					of.Run = 0
					if outcome, got := p.outcome(of); outcome != "" && outcome != log.OutcomeExact || got[len(got)-1] != "exact" {
						t.Errorf("from %s: %q", of, got)
					}
				}
				p.end()
				resyncs, resumes := p.watch.Stats().Resyncs, next.Watches()
				if resyncs["initial"]+resyncs["reconnect"]+resyncs["epoch_changed"] != 0 || resumes[len(resumes)-1].Revision != inFile.AsOf {
					t.Errorf("snapshots: %v, after %v", resyncs, resumes)
				}
			})
		}
	}
}

// nextOf returns what a subscription has, without revisions.
func nextOf(s *log.Subscription) (got []string) {
	var b log.Batch
	for s.Next(&b) {
		for e := range b.Events() {
			if e.Type == stream.Upsert || e.Type == stream.Delete {
				got = append(got, fmt.Sprintf("%s %s", e.Type, e.Resource.Key))
			}
		}
	}
	return got
}

// TestUpstreamThatHasForgotten sends a snapshot: who is known to have nothing else is sent the difference, and
// anybody else all of it.
func TestUpstreamThatHasForgotten(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir, u := tempDir(t), streamtest.NewUpstream("e", streamtest.OwnRevision)
		commit(u, "a", "b")
		p := run(t, dir, u.Replica())
		position := p.await(stream.InSync, at(u.Revision())).Position()
		want := "[delete b upsert c upsert a exact]"
		if killed {
			p.kill()
			want = "[upsert c upsert a expired]"
		} else {
			p.end()
		}
		commit(u, "c", "-b")
		commit(u, "a")
		next := u.Replica()
		next.Compact()
		p = run(t, dir, next)
		p.await(stream.InSync, at(u.Revision()))
		s := p.watch.Subscribe(log.SubscribeOptions{Resume: &position})
		got := append(nextOf(s), string(s.Outcome()))
		s.Close()
		p.end()
		if resyncs := p.watch.Stats().Resyncs; fmt.Sprint(got) != want || resyncs["reconnect"] != 1 {
			t.Errorf("killed %t: %s, want %s; %v", killed, got, want, resyncs)
		}
	}
}

// TestRecordOfAnOlderGateway does not say what the source calls the order: the upstream sends a snapshot.
func TestRecordOfAnOlderGateway(t *testing.T) {
	dir, u := tempDir(t), streamtest.NewUpstream("e", streamtest.OwnRevision)
	commit(u, "a", "b")
	p := run(t, dir, u.Replica())
	position := p.await(stream.InSync, at(u.Revision())).Position()
	p.end()
	edit(t, dir, func(r *record) { r.SourceEpoch = "" })
	next := u.Replica()
	p = run(t, dir, next)
	p.await(stream.InSync, at(u.Revision()))
	if _, got := p.outcome(position); fmt.Sprint(got) != "[exact]" || next.Watches()[0] != (stream.Resume{}) {
		t.Errorf("%s, after %v", got, next.Watches())
	}
	p.end()
}

// edit changes what the file says about the watch.
func edit(t *testing.T, dir string, change func(*record)) {
	t.Helper()
	j, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.update(func(tx *disk.Tx) error {
		r, err := readRecord(tx, "w")
		if err != nil {
			return err
		}
		change(r)
		return putRecord(tx, "w", r)
	}); err != nil {
		t.Fatal(err)
	}
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
