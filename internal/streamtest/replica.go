package streamtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// ErrCut is the error of Watch when the test cuts the connection.
var ErrCut = errors.New("connection cut by the test")

// Replica is an endpoint of an [Upstream], and the source that follows it. It shows
// the upstream as of some transaction, with the configured faults. All methods are
// safe for concurrent use.
type Replica struct {
	upstream *Upstream // static after construction

	mu      sync.Mutex
	changed chan struct{} // closed at each change below, and replaced
	epoch   int           // of Truth
	shown   int           // transactions that this endpoint shows
	history int           // it can resume after this many transactions; they are compacted
	forget  bool          // it cannot resume at all
	recalls bool          // it tells of deletes with its snapshots
	refuse  error         // it refuses connections
	cut     int           // the next snapshot is cut after so many resources; -1: it is not
	kills   int           // how often the connection was cut by Disconnect
	kill    error         // the error of the cut
	says    []stream.Status
	watches []stream.Resume // the positions that Watch was called with
	up      bool            // a Watch call is being served, and its snapshot is over
	fresh   []Freshness
	partly  bool     // the next connection that resumes lacks values
	foreign bool     // the next connection is to something else
	polled  *listing // the result of the newest Poll; nil: none
	known   known
}

// Freshness is a moment at which an endpoint, as a source sees it, became fresh
// or ceased to be.
type Freshness struct {
	At    time.Time
	Fresh bool
}

// Catch shows n more transactions of the endpoint's order; all if n is negative.
func (r *Replica) Catch(n int) {
	r.change(func() {
		_, txns := r.upstream.truth.read(r.epoch, 0, int(^uint(0)>>1))
		if n < 0 || r.shown+n > len(txns) {
			n = len(txns) - r.shown
		}
		r.shown += n
	})
}

// Behind returns how many transactions of its order the endpoint does not show.
func (r *Replica) Behind() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, txns := r.upstream.truth.read(r.epoch, 0, int(^uint(0)>>1))
	return len(txns) - r.shown
}

// Revision returns that of the newest transaction that the endpoint shows.
func (r *Replica) Revision() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, txns := r.upstream.truth.read(r.epoch, r.shown-1, r.shown)
	return txns[0].Revision
}

// FallBack cuts the connection; the next one is to an endpoint that is n
// transactions behind the last one.
func (r *Replica) FallBack(n int) {
	r.change(func() {
		r.shown = max(1, r.shown-n)
		r.killLocked(ErrCut)
	})
}

// Move takes the endpoint to the newest revision order, if it is not there, and cuts
// the connection. It shows the first transaction of that order.
func (r *Replica) Move() {
	r.change(func() {
		if epoch, _ := r.upstream.truth.end(); epoch != r.epoch {
			was, _ := r.upstream.truth.read(r.epoch, 0, 0)
			is, _ := r.upstream.truth.read(epoch, 0, 0)
			r.recalls = r.recalls && was != is // those of an order of the same name are others
			r.epoch, r.shown, r.history, r.polled = epoch, 1, 0, nil
			r.killLocked(ErrCut)
		}
	})
}

// Disconnect cuts the connection: Watch returns err, which may be nil.
func (r *Replica) Disconnect(err error) { r.change(func() { r.killLocked(err) }) }

// Refuse makes connections fail with err from now on, including the current one.
// Nil: they succeed again.
func (r *Replica) Refuse(err error) {
	r.change(func() {
		r.refuse = err
		if err != nil {
			r.killLocked(err)
		}
	})
}

// CutSnapshot makes the next snapshot end after n resources, before its Commit.
func (r *Replica) CutSnapshot(n int) { r.change(func() { r.cut = n }) }

// Compact drops the history from which a source could resume at an earlier
// state.
func (r *Replica) Compact() { r.change(func() { r.history = r.shown }) }

// Foreign makes the next connection one to another upstream, as a misconfigured load
// balancer does: its snapshot, of an order of its own, cannot be read.
func (r *Replica) Foreign() {
	r.change(func() {
		r.foreign = true
		r.killLocked(stream.ErrUnresumable)
	})
}

// Conflate makes the next connection that resumes lack values: it sends only the newest change
// of each key, in one transaction, like an upstream that keeps no others. It is for upstreams
// whose deletes have revisions of their own.
func (r *Replica) Conflate() { r.change(func() { r.partly = true }) }

// Forget makes the endpoint never resume.
func (r *Replica) Forget() { r.change(func() { r.forget = true }) }

// Recall makes the endpoint tell, with each snapshot, of the deletes that it has not compacted. It
// is for upstreams whose deletes have revisions of their own.
func (r *Replica) Recall() { r.change(func() { r.recalls = true }) }

// Poll lists the current keys. A source that follows gets the vanished keys as
// soon as it was sent everything that existed by then.
func (r *Replica) Poll() {
	r.change(func() {
		_, txns := r.upstream.truth.read(r.epoch, 0, int(^uint(0)>>1))
		r.polled = listed(txns)
	})
}

// Say passes on the upstream's report of its own freshness.
func (r *Replica) Say(state stream.State, reason string) {
	r.change(func() { r.says = append(r.says, stream.Status{State: state, Reason: reason}) })
}

// Watches returns the positions that Watch was called with so far.
func (r *Replica) Watches() []stream.Resume {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.watches)
}

// Up reports whether a source is connected and has got its snapshot.
func (r *Replica) Up() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

func (r *Replica) killLocked(err error) {
	r.kills++
	r.kill = err
}

func (r *Replica) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.changed)
	r.changed = make(chan struct{})
}

// DeletesUnnumbered implements [stream.DeletesUnnumbered].
func (r *Replica) DeletesUnnumbered() bool { return r.upstream.deletes != OwnRevision }

// Recognise implements [stream.Recognising]: what is known of the keys is what another process has.
func (r *Replica) Recognise(at stream.Resume, resources, _ iter.Seq[stream.Resource]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name, _ := r.upstream.truth.read(r.epoch, 0, 0); name != at.Epoch {
		return
	}
	r.known = known{epoch: r.epoch, at: at.Revision, keys: map[string]uint64{}, complete: at.Revision - min(at.Revision, at.DeletesBehind)}
	for one := range resources {
		r.known.keys[one.Key] = one.Revision
	}
}

// Restart makes the endpoint one that another process follows: it forgets what it knows of the keys.
func (r *Replica) Restart() { r.change(func() { r.known = known{} }) }

// Watch implements [stream.Source].
func (r *Replica) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	s := &session{replica: r, sink: sink}
	begin, err := s.open(resume)
	if err != nil {
		return err
	}
	defer r.setUp(false)
	if err := begin(); err != nil {
		return err
	}
	r.setUp(true)
	for {
		if err := s.follow(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.more:
		}
		if s.killed {
			return s.killErr
		}
	}
}

// Freshness returns every change of freshness so far. Before the first one, the
// endpoint is not fresh.
func (r *Replica) Freshness() []Freshness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.fresh)
}

func (r *Replica) setUp(up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up = up
	r.noteFreshness(stream.InSync)
}

// noteFreshness records a change, if it is one. said is the upstream's own report.
func (r *Replica) noteFreshness(said stream.State) {
	fresh := r.up && said == stream.InSync
	if last := len(r.fresh) - 1; fresh != (last >= 0 && r.fresh[last].Fresh) {
		r.fresh = append(r.fresh, Freshness{At: time.Now(), Fresh: fresh})
	}
}

// session is one Watch call, owned by it.
type session struct {
	replica *Replica
	sink    stream.Sink

	epoch, sent int // of Truth: the transactions that the source was sent
	kills, said int // how many of the replica's existed before or are seen
	polled      *listing
	known       known
	more        <-chan struct{}
	killed      bool
	killErr     error
}

// open connects, and returns how the session begins: with the changes since resume
// if the endpoint can, otherwise with a snapshot.
func (s *session) open(resume stream.Resume) (begin func() error, err error) {
	r := s.replica
	truth := r.upstream.truth
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, resume)
	if r.refuse != nil {
		return nil, r.refuse
	}
	s.epoch, s.kills, s.said = r.epoch, r.kills, len(r.says)
	if r.foreign {
		r.foreign = false
		return s.unreadable, nil
	}
	name, shown := truth.read(r.epoch, 0, r.shown)
	head := shown[len(shown)-1]
	from := min(truth.find(r.epoch, resume.Revision), len(shown))
	may := resume.Epoch == name && resume.Revision <= head.Revision && !r.forget && from >= max(r.history, 1)
	if s.polled = r.polled; r.upstream.deletes == Vanishing {
		s.known = r.known.clone()
		if may && s.known.at == resume.Revision && s.known.epoch == r.epoch {
			return func() error { return s.compare(from, shown) }, nil
		}
		may = false
	}
	if may && r.partly {
		r.partly = false
		return func() error { return s.conflate(from, shown) }, nil
	}
	if may {
		return func() error { return s.resume(from, shown) }, nil
	}
	cut := r.cut
	r.cut = -1
	if after := r.history; r.recalls {
		return func() error { return s.recall(name, shown, min(max(after, 1), len(shown)), cut) }, nil
	}
	return func() error { return s.snapshot(name, head, len(shown), cut, nil) }, nil
}

// resume sends the newer changes, resends deletes without a revision of their own
// that share the one to resume from, and reports that it has caught up.
func (s *session) resume(from int, shown []Transaction) error {
	for from > 1 && shown[from-1].Revision == shown[from-2].Revision {
		from--
	}
	s.sent = len(shown)
	if from == len(shown) {
		if err := s.sink.Commit(shown[from-1].Revision); err != nil {
			return err
		}
	}
	for _, txn := range shown[from:] {
		if err := s.send(txn); err != nil {
			return err
		}
	}
	return s.sink.Status(stream.InSync, "")
}

// conflate is resume with the newest change of each key only.
func (s *session) conflate(from int, shown []Transaction) error {
	if from == len(shown) {
		return s.resume(from, shown)
	}
	s.sent = len(shown)
	s.sink.Conflated()
	newest := map[string]int{}
	for i, txn := range shown[from:] {
		for _, c := range txn.Changes {
			newest[c.Key] = i
		}
	}
	for i, txn := range shown[from:] {
		txn.Changes = slices.DeleteFunc(slices.Clone(txn.Changes), func(c log.Change) bool { return newest[c.Key] != i })
		if err := s.stage(txn); err != nil {
			return err
		}
	}
	if err := s.sink.Commit(shown[len(shown)-1].Revision); err != nil {
		return err
	}
	return s.sink.Status(stream.InSync, "")
}

// unreadable sends a snapshot with a value that is not JSON on one line.
func (s *session) unreadable() error {
	if err := s.sink.Reset("foreign"); err != nil {
		return err
	}
	if err := s.sink.Upsert(stream.Resource{Key: "k", Revision: 1, Value: []byte("1\n2")}); err != nil {
		return err
	}
	return s.sink.Commit(1)
}

// recall sends a snapshot, and the deletes after a number of transactions.
func (s *session) recall(name string, shown []Transaction, after, cut int) error {
	var deletes []log.Change
	for _, txn := range shown[after:] {
		for _, c := range txn.Changes {
			if c.Deleted {
				deletes = append(deletes, c)
			}
		}
	}
	return s.snapshot(name, shown[len(shown)-1], len(shown), cut, func() error {
		for _, c := range deletes {
			if err := s.sink.Delete(c.Key, c.Revision); err != nil {
				return err
			}
		}
		s.sink.DeletesCompleteAfter(shown[after-1].Revision)
		return nil
	})
}

// snapshot sends the state after a transaction, with what else there is to tell; nil: nothing.
func (s *session) snapshot(name string, at Transaction, sent, cut int, also func() error) error {
	if err := s.sink.Reset(name); err != nil {
		return err
	}
	if also != nil {
		if err := also(); err != nil {
			return err
		}
	}
	// By key, and so in no order of revisions: any order is right.
	for _, key := range sortedKeys(at.After) {
		if cut == 0 {
			return fmt.Errorf("%w in the middle of a snapshot", ErrCut)
		}
		cut--
		if err := s.sink.Upsert(at.resources[key]); err != nil {
			return err
		}
	}
	if cut >= 0 {
		return fmt.Errorf("%w at the end of a snapshot", ErrCut)
	}
	s.sent = sent
	s.known = known{epoch: s.epoch, keys: map[string]uint64{}}
	for key, v := range at.After {
		s.known.keys[key] = v.Revision
	}
	return s.commit(at.Revision, at.Revision)
}

// follow sends the transactions that the endpoint shows and the source was not
// sent.
func (s *session) follow() error {
	txns, says := s.news()
	for _, status := range says {
		if err := s.say(status); err != nil {
			return err
		}
	}
	for _, txn := range txns {
		if err := s.send(txn); err != nil {
			return err
		}
	}
	return s.compareNewest()
}

func (s *session) say(status stream.Status) error {
	if err := s.sink.Status(status.State, status.Reason); err != nil {
		return err
	}
	s.replica.mu.Lock()
	defer s.replica.mu.Unlock()
	s.replica.noteFreshness(status.State)
	return nil
}

func (s *session) news() ([]Transaction, []stream.Status) {
	r := s.replica
	r.mu.Lock()
	defer r.mu.Unlock()
	s.more = r.changed
	if s.killed = r.kills != s.kills; s.killed {
		// The rest of the connection's events is lost with it.
		s.killErr = r.kill
		s.more = closedChannel
		return nil, nil
	}
	says := r.says[s.said:]
	s.said = len(r.says)
	if r.polled != s.polled {
		s.polled = r.polled
		s.known.compared = false
	}
	_, txns := r.upstream.truth.read(s.epoch, min(s.sent, r.shown), r.shown)
	s.sent += len(txns)
	return txns, says
}

func (s *session) send(txn Transaction) error {
	if txn.Vanished {
		return nil // without a status
	}
	if err := s.stage(txn); err != nil {
		return err
	}
	return s.commit(txn.Revision, s.known.complete)
}

func (s *session) stage(txn Transaction) error {
	for _, c := range txn.Changes {
		err := error(nil)
		if c.Deleted {
			err = s.sink.Delete(c.Key, c.Revision)
		} else {
			err = s.sink.Upsert(c.Resource)
		}
		if err != nil {
			return err
		}
		s.known.note(c)
	}
	return nil
}

var closedChannel = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
