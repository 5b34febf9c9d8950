package log

import (
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/signal"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// View is the writing side of the log of a view of another log. It has some of the
// entries of that log, with the same seqs and at the same places, except that the change
// with which a resource leaves the view is a delete. So all that is true of the order of
// the other log, and of positions in it, is true of the view.
//
// What is added becomes visible with Publish. A View belongs to one goroutine at a time.
type View struct {
	w        *Writer
	base     uint64           // seq of the state with which the generation began
	fresh    bool             // the generation is not published yet
	of       *storage.Version // from which it is being made
	added    int64            // bytes of frames, since the last Publish
	lacks    bool             // Lacks was called since then
	tells    bool             // readers are to be told of a window since then
	held     []Entry          // added but not written: adjacent ones of one segment of the other log
	own      bool             // see NewNamedPart; static
	live     int64            // bytes of what is not superseded, as of the last Publish
	dead     int64            // bytes of superseded frames, as of the last Publish
	news     int64            // bytes of frames, since the last Count
	unclosed *storage.Entry   // the last one added, if its transaction may have more
}

// NewView returns a view of a log without entries: not primed, with the status Priming. Its
// Log is read like any other.
func NewView(of *Log, c Config) *View {
	w := NewWriter(c)
	w.isView, w.framing = true, of.framing // nobody reads it yet
	return &View{w: w}
}

// NewNamedView returns a view of any other log, under a name of its own. It has frames and
// numbers of its own, and each state of the other log makes one of the view, so that it can
// have views like a log that has a source.
func NewNamedView(c Config) *View {
	w := NewWriter(c)
	w.isView = true
	return &View{w: w, own: true}
}

// Log returns the log of the view.
func (p *View) Log() *Log { return p.w.Log }

// Begin begins a new generation: the view of the state s, in a revision order of its own.
// Readers may resume from the revision low if every change of the view since then is
// added.
func (p *View) Begin(s Snapshot, epoch string, low uint64) {
	p.w.open().restart(epoch)
	p.w.unnumbered = false // each delete is told apart as in the other log
	w := p.w
	p.base, p.fresh, p.added, p.news, p.unclosed = s.v.Seq, true, 0, 0, nil
	p.of, p.held = s.v, p.held[:0]
	w.next.OfGeneration, w.next.Conflated, w.next.ConflatedSeq = s.v.Generation, s.v.Conflated, s.v.ConflatedSeq
	w.next.Seq, w.next.Intact, w.next.Readable = 0, s.v.Seq, s.v.Seq
	w.next.Horizon, w.next.HorizonAge = low, s.v.Committed
	w.next.Since, w.next.Run = s.v.Revision, storage.Run{Name: s.v.Run.Name, Horizon: low, Former: s.v.Run.Former}
}

// Count counts what was added so far, before it is published. It reports whether that makes the
// part larger than what is published.
func (p *View) Count() (larger bool) {
	w := p.w
	if p.news = 0; w.next == nil {
		return false
	}
	live := w.holds() - w.dead
	w.account.SetLog(live, w.dead)
	return live > p.live
}

// Beside counts bytes that are kept beside the log as the log's, from the next Publish on.
func (p *View) Beside(bytes int64) { p.w.beside = bytes }

// Uncounted is how many bytes were added since the last Count or Publish.
func (p *View) Uncounted() int64 { return p.news }

// Abandon forgets what is not published, and counts what is. Nothing can be added before the
// next Begin.
func (p *View) Abandon() {
	if p.w.next == nil {
		return
	}
	p.fresh, p.added, p.news, p.unclosed, p.of, p.held = false, 0, 0, nil, nil, nil
	p.w.restart("")
	p.w.account.SetLog(p.live, p.dead)
}

// Add adds the change of a resource that the view has after it; projected, if not nil, is
// what the view has of it. Otherwise the view has the frame of the other log, or in the
// making of a view a share of its slab.
func (p *View) Add(e Entry, projected *stream.Resource) {
	if projected == nil && p.own { // the frame has another name
		r := e.Resource()
		projected = &r
	}
	if p.fresh && projected == nil && e.e.Seq <= p.base { // the only one of its key
		p.hold(e)
		return
	}
	p.write()
	w, k := p.w.open(), e.key()
	if projected == nil {
		p.copy(e)
	} else {
		to, frame := p.append(e, k, w.framing.Size(projected, false, k.Key))
		w.framing.Append(frame, projected, false, k.Key)
		if projected.Encoding != "" {
			to.Flags |= storage.ValueBase64
		}
		to.Content = digest.Of(e.log.framing.Key(e.s, e.e), projected.Value, projected.Encoding)
		w.next.Digest = w.next.Digest.Add(to.Content)
	}
}

// copy writes the frame of an entry.
func (p *View) copy(e Entry) {
	to, frame := p.append(e, e.key(), int(e.e.Size))
	_ = append(frame, e.s.Frame(e.e)...)
	to.Flags |= e.e.Flags & storage.ValueBase64
	to.Content = e.e.Content
	p.w.next.Digest = p.w.next.Digest.Add(to.Content)
}

// hold keeps an entry until it is known how much of its segment the view has.
func (p *View) hold(e Entry) {
	if len(p.held) > 0 && p.held[0].s != e.s {
		p.write()
	}
	p.held = append(p.held, e)
}

// write writes the entries that are held. If they are at least half of a segment that is
// full, the view shares its slab, which then counts as the view's.
func (p *View) write() {
	if len(p.held) == 0 {
		return
	}
	bytes := 0
	for _, e := range p.held {
		bytes += int(e.e.Size)
	}
	of := p.held[0].s
	if n := len(of.Slab); n >= storage.SegmentSize && bytes >= n/2 && p.of.Segments[len(p.of.Segments)-1] != of {
		p.lend(of)
	} else {
		for _, e := range p.held {
			p.copy(e)
		}
	}
	clear(p.held)
	p.held = p.held[:0]
}

// lend writes the entries that are held as a segment that shares the slab of another.
func (p *View) lend(of *storage.Segment) {
	w := p.w
	s := storage.NewLent(w.next.Number, of, len(p.held))
	w.next.Segments, w.next.First, w.next.Tail = append(w.next.Segments, s), append(w.next.First, p.held[0].e.Seq), 0
	w.allocate(s)
	for _, e := range p.held {
		k := e.key()
		slot, _, _ := w.slot(k)
		to := s.Lend(e.e)
		to.Flags &^= storage.EndsCommit
		w.next.Seq, w.next.Tail = to.Seq, s.N
		w.used += int64(to.Size)
		w.index.Set(slot, k.Hash, to.Seq)
		w.next.Digest = w.next.Digest.Add(to.Content)
		p.unclosed = to
		p.added += int64(to.Size)
		p.news += int64(to.Size)
	}
}

// Remove adds the change with which a resource left the view: it was deleted, or is no
// longer selected.
func (p *View) Remove(e Entry) {
	p.write()
	w, k := p.w.open(), e.key()
	gone := stream.Resource{Revision: e.log.framing.ShownRevision(e.s, e.e)}
	to, frame := p.append(e, k, w.framing.Size(&gone, true, k.Key))
	w.framing.Append(frame, &gone, true, k.Key)
	to.Flags |= e.e.Flags & storage.UnnumberedDelete
	w.remember(to, time.Now())
}

func (p *View) append(e Entry, k storage.Key, size int) (*storage.Entry, []byte) {
	to, frame := p.w.appendEntry(e.e.Seq, k, size)
	to.Revision = e.e.Revision
	p.unclosed = to
	p.added += int64(size)
	p.news += int64(size)
	return to, frame
}

// Lacks records that a reader from elsewhere may have the resource of an entry, which the view
// does not delete at that entry. So no reader from before the entry resumes.
func (p *View) Lacks(e Entry) {
	p.w.open().next.Lack(e.e)
	p.lacks = true
}

// Has reports whether the view has the resource of an entry now.
func (p *View) Has(e Entry) bool {
	p.write()
	_, _, last := p.w.lookup(e.key())
	return last != nil && !last.Is(storage.IsDelete)
}

// EndTransaction is called after the last entry of each transaction of the other log, if
// the view has some of it. If what the view has of it is older than that entry, no id may
// follow directly: there may have been an outage in between. See storage.Entry.ClearEndInOutage.
func (p *View) EndTransaction(last Entry) {
	if p.unclosed != nil && p.unclosed.Revision == last.e.Revision {
		p.unclosed.Flags |= storage.EndsCommit
	}
	p.unclosed = nil
}

// Skipped records that the view may lack superseded entries up to the state s, since they
// are no longer there. So no id between them would be true, readers catch up, and no page is
// as of a revision before s.
func (p *View) Skipped(s Snapshot) {
	next := p.w.open().next
	next.Intact, next.Since = max(next.Intact, s.v.Seq), max(next.Since, s.v.Revision)
	if p.own { // parts of the view may lack values too
		next.Conflated, next.ConflatedSeq = max(next.Conflated, s.v.Revision), max(next.ConflatedSeq, s.v.Seq)
	}
}

// Publish makes visible what was added, as the view of the state s. Readers that wait are
// woken if anything was, if the status or the origin is another one, or if they wait for
// any new state. It returns false if nobody has to know.
func (p *View) Publish(s Snapshot) bool {
	p.write()
	w := p.w
	awaited := w.wanted.Swap(false)
	if !p.fresh && !p.lacks && !p.tells && p.added == 0 && (p.own && p.reflects(s) || !p.own && !awaited && p.reflect(s)) {
		return false
	}
	w.open().next.Reflect(s.v)
	if p.own {
		p.recordTimes(s)
	}
	p.unclosed = nil
	switch {
	case p.fresh:
		w.next.Seq = max(w.next.Seq, p.base) // of its readers; each entry to come has a greater one
		w.forgetDeletes(time.Now())
		w.pack()
	case p.added > 0:
		w.forgetDeletes(time.Now())
		w.compactAfter(p.added)
	}
	p.fresh, p.lacks, p.tells, p.added, p.news, p.of, p.held = false, false, false, 0, 0, nil, nil
	p.live, p.dead = w.holds()-w.dead, w.dead
	w.publish()
	return true
}

// reflects reports whether the newest version reflects a state already.
func (p *View) reflects(s Snapshot) bool {
	v := p.w.head.Load()
	return v.OfGeneration == s.v.Generation && v.Of == s.v.Number && v.Status == s.v.Status
}

// recordTimes records when what was added became visible, and how much of it superseded what
// readers of parts may ask for.
func (p *View) recordTimes(s Snapshot) {
	if p.added == 0 {
		return
	}
	w, before := p.w, uint64(0)
	if !p.fresh {
		before = w.head.Load().Seq
		w.recent.Add(before, w.dead-p.dead, s.v.Committed, w.history.MaxAge)
	}
	w.next.Times = w.next.Times.Add(before+1, s.v.Committed, !p.fresh, storage.CommitSpacing(w.history.MaxAge))
}

// reflect makes the view reflect a state that changes nothing for its readers. It returns
// false if it changes something.
func (p *View) reflect(s Snapshot) bool {
	for {
		v := p.w.head.Load()
		if !storage.SameStatus(v.Status, s.v.Status) || v.Origin != s.v.Origin {
			return false
		}
		next := *v
		next.Reflect(s.v)
		if p.w.head.CompareAndSwap(v, &next) {
			return true
		}
	}
}

// FedBy makes the view reflect whatever f says, when it is read; nil: what was published.
func (p *View) FedBy(f *Fed) {
	p.w.fed.Store(f)
	if f != nil && p.Awaited() {
		f.wanted.Store(true) // by a reader that did not know f
	}
}

// SetStatus publishes the freshness of the view, until it next reflects a state, and
// nothing of what was added.
func (p *View) SetStatus(status stream.Status) {
	if p.own && p.w.next == nil {
		p.w.open().SetStatus(status)
		return
	}
	if p.w.next != nil {
		p.w.next.Status = &status
	}
	for {
		v := p.w.head.Load()
		next := *v
		next.Status, next.Changed, next.Urgent = &status, new(signal.Signal), new(signal.Signal)
		if p.w.head.CompareAndSwap(v, &next) {
			v.Changed.Send()
			v.Urgent.Send()
			p.w.Notified()
			return
		}
	}
}

// Discard forgets everything; see Writer.Discard.
func (p *View) Discard(s stream.Status) {
	p.fresh, p.added, p.live, p.dead, p.news, p.unclosed, p.of, p.held = false, 0, 0, 0, 0, nil, nil, nil
	p.w.open().Discard(s)
}

// Fed is how far the parts of a log that share it are fed. Whatever a state has that
// concerns one of them, that part has too. The others learn of the state when they are
// read.
//
// Its methods may be called from any goroutine.
type Fed struct {
	newest atomic.Pointer[storage.Version]
	wanted atomic.Bool // a reader of a view waits for the next state
}

// Set records the state up to which the parts are fed. It reports whether a reader waits
// for it; see View.Awaited.
func (f *Fed) Set(s Snapshot) (awaited bool) {
	f.newest.Store(s.v)
	return f.wanted.Swap(false)
}

// Awaited reports whether a reader waits for any newer state. Publish wakes it.
func (p *View) Awaited() bool { return p.w.wanted.Load() }

// awaited makes the next state of a view wake its readers. It returns the newest version,
// after v.
func (l *Log) awaited(v *storage.Version) *storage.Version {
	if !l.isView {
		return v
	}
	l.wanted.Store(true)
	if fed := l.fed.Load(); fed != nil {
		fed.wanted.Store(true)
	}
	if l.from != nil {
		l.from.awaited(l.from.newest())
	}
	return l.newest()
}

// Reached reports whether a view has all that a state of the other log has. If not, the
// channel is closed when it is time to look again.
func (l *Log) Reached(s Snapshot) (reached bool, changed <-chan struct{}) {
	v := l.newest()
	if !v.HasReached(s.v) {
		v = l.awaited(v)
	}
	return v.HasReached(s.v), v.Changed.Sent()
}

// changesAfter is how many changes a version has after a seq. Of a view of another log,
// those are counted that are still there, with the deletes that may be superfluous.
func (l *Log) changesAfter(v *storage.Version, seq uint64) uint64 {
	if l.isView {
		return uint64(v.EntriesFrom(v.After(seq)))
	}
	return v.Seq - seq
}

// newest returns the newest version.
func (l *Log) newest() *storage.Version {
	if l.from != nil {
		return l.derivedNewest()
	}
	fed := l.fed.Load()
	if fed == nil {
		return l.head.Load()
	}
	of := fed.newest.Load() // before the view itself, which then has at least what concerns it
	for {
		v := l.head.Load()
		if of == nil || !v.Primed() || v.OfGeneration != of.Generation || v.Of >= of.Number {
			return v
		}
		next := *v
		next.Reflect(of)
		if l.head.CompareAndSwap(v, &next) {
			return &next
		}
	}
}
