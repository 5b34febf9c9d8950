package log

import (
	"math"
	"time"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

// NewWindow returns the log of a window of a view: of those of its resources that come first, after
// so many, in an order. Unlike another View it has entries of its own. A resource can enter it because
// another one has left, and then has an older revision than the change with which it enters. So an
// entry has the place of that change in the order of the log, and shows the revision of its
// resource; the delete of a resource that was pushed out shows that of the change.
//
// All resources with which a generation begins have the place of its state. So positions mean the same
// in all logs of the same window, whenever they began: a reader at a revision has what the window was
// then.
func NewWindow(c Config) *View {
	w := NewWriter(c)
	w.isView, w.framing = true, storage.NewWindowFormat(c.Watch)
	return &View{w: w}
}

// BeginWindow begins a new generation: the window of the state s. Where deletes have no revision,
// the state at a revision is not the same on all replicas, so only readers of this log resume.
func (p *View) BeginWindow(s Snapshot, epoch string) {
	p.Begin(s, epoch, s.v.Revision)
	p.w.next.Window.Is = true
	if p.w.next.HasOwnRun() {
		p.w.next.Horizon, p.w.next.Run = math.MaxUint64, storage.NewRun()
	}
}

// Enter adds a resource that the window has after a change at a revision.
func (p *View) Enter(r stream.Resource, revision uint64) {
	w, k := p.w.open(), storage.NewKey(r.Key)
	to, frame := p.appendAt(revision, k, w.framing.Size(&r, false, k.Key))
	w.framing.Append(frame, &r, false, k.Key)
	if r.Encoding != "" {
		to.Flags |= storage.ValueBase64
	}
	to.Content = digest.Of(r.Key, r.Value, r.Encoding)
	w.next.Digest = w.next.Digest.Add(to.Content)
}

// Leave adds that the window does not have a resource after a change at a revision, although the view
// has it.
func (p *View) Leave(key string, revision uint64) {
	w, k, gone := p.w.open(), storage.NewKey(key), stream.Resource{Revision: revision}
	to, frame := p.appendAt(revision, k, w.framing.SizeLeft(&gone, k.Key))
	w.framing.AppendLeft(frame, &gone, k.Key)
	w.remember(to, time.Now())
}

// Delete adds that neither the window nor the view has a resource after a change at a revision.
func (p *View) Delete(key string, revision uint64) {
	w, k, gone := p.w.open(), storage.NewKey(key), stream.Resource{Revision: revision}
	to, frame := p.appendAt(revision, k, w.framing.Size(&gone, true, k.Key))
	w.framing.Append(frame, &gone, true, k.Key)
	w.remember(to, time.Now())
}

func (p *View) appendAt(revision uint64, k storage.Key, size int) (*storage.Entry, []byte) {
	to, frame := p.w.appendEntry(p.w.next.Seq+1, k, size)
	to.Revision = revision
	p.unclosed = to
	p.added += int64(size)
	p.news += int64(size)
	return to, frame
}

// placedUpserts is the revision up to which a reader within a snapshot has all resources of a version, which it has up to
// upserts, as it may be told to another replica. Below its horizon, a window does not know what it was: a replica
// that was not sent all values has given its resources places there that they have nowhere else. So a reader that has a part
// of those has nothing for certain.
func placedUpserts(v *storage.Version, upserts uint64) uint64 {
	if v.Window.Is && upserts < min(v.Horizon, v.Revision) {
		return 0
	}
	return upserts
}

// CloseTransaction ends what was added as one transaction. An id follows it if known is true: the
// revision of its changes is then one of the other log.
func (p *View) CloseTransaction(known bool) {
	if p.unclosed != nil && known {
		p.unclosed.Flags |= storage.EndsCommit
	}
	p.unclosed = nil
}

// Ambiguous records that a reader at a revision may have had the window before the newest change, or
// after it. So none at it resumes.
func (p *View) Ambiguous(revision uint64) {
	next := p.w.open().next
	next.Run.Horizon = max(next.Run.Horizon, revision+1)
	if next.Horizon <= revision {
		next.Horizon, next.HorizonAge = revision+1, next.Committed
	}
}

// Doubt records that the window may have been another one before a revision. So no reader from before
// it resumes, and those that serve the window to others are told.
func (p *View) Doubt(revision uint64) {
	next := p.w.open().next
	next.Run.Horizon, next.Conflated = max(next.Run.Horizon, revision), max(next.Conflated, revision)
	if next.Horizon < revision {
		next.Horizon, next.HorizonAge = revision, next.Committed
	}
	p.lacks = true
}

// SetWindow sets what the window says besides its resources, as of a state that changes nothing else
// in it. If Told rises, the next Publish tells the readers.
func (p *View) SetWindow(s Snapshot, about storage.Window) {
	p.tells = p.tells || about.Told != p.w.head.Load().Window.Told
	if p.w.next != nil {
		p.w.next.Window = about
		return
	}
	for {
		v := p.w.head.Load()
		next := *v
		next.Reflect(s.v)
		if next.Window = about; p.w.head.CompareAndSwap(v, &next) {
			return
		}
	}
}

// Window returns the state of a window, whose resources are not sorted, and what the window says
// besides. The log must be primed.
func (l *Log) Window() (Page, storage.Window) {
	v := l.newest()
	p := Page{Revision: v.Revision, Count: v.Count(), Position: v.WithRun(Snapshot{l, v}.Position())}
	for r := range (Snapshot{l, v}).Resources() {
		p.Resources = append(p.Resources, r)
	}
	return p, v.Window
}
