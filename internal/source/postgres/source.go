package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Source follows one table. It is a [stream.Source].
//
// Watch is called by one goroutine at a time.
type Source struct {
	// Static after construction.
	upstream *Upstream
	table    Table

	expected atomic.Int64 // about how many rows the table has that is being read; 0: it is not known

	// Owned by Watch.
	keeper
	rows      map[string]row // as of the last commit, unless it is nil
	committed uint64         // the revision of the last commit
	epoch     string         // its revision order
	described *described     // the table of rows; nil: another process has read it
}

var (
	_ stream.Source     = (*Source)(nil)
	_ stream.Continuing = (*Source)(nil)
	_ stream.Retaining  = (*Source)(nil)
	_ stream.Estimating = (*Source)(nil)
)

// Continue implements stream.Continuing: the next snapshot is compared with the resources.
func (s *Source) Continue(from stream.Resume, resources iter.Seq[stream.Resource]) {
	s.rows, s.committed, s.epoch, s.described = map[string]row{}, from.Revision, from.Epoch, nil
	for r := range resources {
		s.rows[r.Key] = row{value: bytes.Clone(r.Value), revision: r.Revision}
	}
	s.upstream.continues(s, true)
}

// RetainedBytes implements [stream.Retaining].
func (s *Source) RetainedBytes() (bytes int64, ok bool) {
	bytes = s.upstream.retained.Load()
	return max(bytes, 0), bytes >= 0
}

// EstimatedResources implements [stream.Estimating].
func (s *Source) EstimatedResources() int64 { return s.expected.Load() }

// Watch implements [stream.Source]. It begins with a snapshot, in which a row that has not changed keeps
// its revision, unless a permanent slot has all that came after the last commit.
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	outer := ctx
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.rows != nil && (resume.Epoch != s.epoch || resume.Revision != s.committed) {
		s.rows = nil // the sink has something else
	}
	m := &member{table: s.table, end: end}
	m.queue = newQueue(sink, func() {
		end(fmt.Errorf("%w: more than %d bytes of changes arrived while the table was read", stream.ErrUnresumable, maxWaiting))
	})
	err := s.watch(ctx, m, sink)
	if outer.Err() != nil {
		s.rows = nil // perhaps no watch needs them again
	}
	if s.rows == nil {
		s.upstream.continues(s, false)
	}
	return s.upstream.failed(because(ctx, err))
}

// watch joins the session and follows the table until something ends it.
func (s *Source) watch(ctx context.Context, m *member, sink stream.Sink) error {
	session, err := s.upstream.join(ctx, m)
	if err != nil {
		return err
	}
	defer session.leave(m)
	defer session.settle(s)
	defer func() {
		// Others do not wait for a table that cannot be followed.
		s.upstream.continues(s, session.ctx.Err() != nil || m.safe.Load() > 0)
	}()
	if err := session.manage(ctx, s.table); err != nil {
		return err
	}
	d, err := session.check(ctx, s.table)
	if err != nil {
		return err
	}
	f := &follower{source: s, session: session, member: m, sink: sink, table: d}
	resumed, err := f.resume(ctx, session.follow(m, d.relations))
	if err != nil {
		return err
	}
	session.settle(s)
	if !resumed {
		if err := f.snapshot(ctx); err != nil {
			return err
		}
	}
	defer f.undo()
	m.queue.setLive()
	return f.run(ctx)
}

// follower turns what a member gets into the calls of a sink. It is owned by Watch.
type follower struct {
	// Static after construction.
	source  *Source
	session *session
	member  *member
	sink    stream.Sink

	table    *described
	from     uint64            // what commits before is known already
	small    bool              // no part of a row was stored out of line when the table was read
	looked   uint64            // where the WAL ended when the table was last looked at
	target   uint64            // the revision at which a watch that goes on has caught up; 0: it has
	layouts  map[uint32]placed // of the relations of the stream
	before   []undone          // what the transaction under way has replaced
	revision uint64            // of the last commit
}

// placed is the layout of a relation as it was last described.
type placed struct {
	of     *relation
	layout *layout
}

// undone is a row as it was before a transaction.
type undone struct {
	key string
	row row
	was bool // it existed
}

// run handles events until something ends it.
func (f *follower) run(ctx context.Context) error {
	check := time.NewTicker(f.source.upstream.config.checkEvery)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.member.queue.arrived:
			if err := f.handleAll(ctx); err != nil {
				return err
			}
		case <-check.C:
			if err := f.check(ctx); err != nil {
				return err
			}
		}
	}
}

func (f *follower) handleAll(ctx context.Context) error {
	for _, e := range f.member.queue.take() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := f.handle(&e)
		f.member.queue.handled(&e)
		if err != nil {
			return err
		}
	}
	return nil
}

// check looks whether the role may still read the table, and whether it is still the same.
func (f *follower) check(ctx context.Context) error {
	now, err := f.session.check(ctx, f.source.table)
	if err == nil && !f.table.same(now) {
		return errChanged
	}
	if err == nil {
		// A transaction may be in the WAL a moment before others see it.
		f.member.safe.Store(min(f.revision+1, max(f.looked, f.from)))
		f.looked = now.at
	}
	return err
}

// handle handles one event.
func (f *follower) handle(e *event) error {
	switch {
	case f.target > 0 && e.progress && e.lsn >= f.target:
		return f.commit(&event{transaction: transaction{lsn: max(e.lsn, f.revision)}, progress: true})
	case e.lsn < f.from || e.progress && e.lsn <= f.revision:
		return nil // it is known
	case e.commit:
		return f.commit(e)
	case e.message[0] == msgTruncate:
		return f.truncate(e)
	}
	c, err := decodeChange(e.message)
	if err != nil {
		return err
	}
	l, err := f.layout(e.relation)
	if err != nil {
		return err
	}
	return f.change(e, l, c)
}

// change passes on a change of one row.
func (f *follower) change(e *event, l *layout, c change) error {
	var was, is string
	var err error
	if c.old != nil {
		if was, err = l.keyOf(c.old, nil); err != nil {
			return err
		}
	}
	if c.new != nil {
		if is, err = l.keyOf(c.new, c.old); err != nil {
			return err
		}
	}
	if c.old == nil {
		was = is
	}
	before, known := f.source.rows[was]
	if c.old != nil && (c.new == nil || was != is) {
		if err := f.remove(was, e.lsn); err != nil {
			return err
		}
	}
	if c.new == nil {
		return nil
	}
	value, err := l.valueOf(c.new, before.value)
	if known && before.value == nil && errors.Is(err, stream.ErrUnresumable) {
		f.source.all = true
		return errLarge
	}
	if err != nil {
		return err
	}
	f.replace(is, f.source.keep(value, e.lsn, e.id, false))
	return f.sink.Upsert(stream.Resource{Key: is, Revision: e.lsn, Value: value})
}

// replace records a row.
func (f *follower) replace(key string, r row) {
	old, was := f.source.rows[key]
	f.before = append(f.before, undone{key, old, was})
	f.source.rows[key] = r
	f.sink.Charge(r.cost(key)) // commit ends the charge of the row that it replaces
}

// remove deletes a row, if it is known.
func (f *follower) remove(key string, lsn uint64) error {
	old, was := f.source.rows[key]
	if !was {
		return nil
	}
	f.before = append(f.before, undone{key, old, was})
	delete(f.source.rows, key)
	return f.sink.Delete(key, lsn)
}

// truncate deletes all rows of a relation.
func (f *follower) truncate(e *event) error {
	for key, r := range f.source.rows {
		if r.relation != e.id {
			continue
		}
		if err := f.remove(key, e.lsn); err != nil {
			return err
		}
	}
	return nil
}

// commit ends a transaction, or reports progress.
func (f *follower) commit(e *event) error {
	if !e.progress {
		f.sink.SetTimestamp(e.at)
	}
	if err := f.sink.Commit(e.lsn); err != nil {
		return err
	}
	f.revision, f.source.committed = e.lsn, e.lsn
	var freed int64
	for i := range f.before {
		if u := &f.before[i]; u.was {
			freed += u.row.cost(u.key)
		}
	}
	f.before = f.before[:0]
	if cap(f.before) > maxKept {
		f.before = nil
	}
	if freed > 0 {
		f.sink.Charge(-freed)
	}
	return f.catchUp(e.lsn)
}

// maxKept is how many elements a slice has that is used for the next transaction.
const maxKept = 1024

// undo makes the rows what they were at the last commit.
func (f *follower) undo() {
	for i := len(f.before) - 1; i >= 0; i-- {
		u := &f.before[i]
		if u.was {
			f.source.rows[u.key] = u.row
			continue
		}
		delete(f.source.rows, u.key)
	}
	f.before = nil
}

// layout returns how rows of a relation of the stream are made. Columns that the table has got since it
// was read are served too.
func (f *follower) layout(r *relation) (*layout, error) {
	if known := f.layouts[r.id]; known.of == r {
		return known.layout, nil
	}
	order := make([]string, len(r.columns))
	for i, c := range r.columns {
		order[i] = c.name
		if err := f.admit(c); err != nil {
			return nil, err
		}
	}
	l, err := place(f.table.served, f.table.key, order)
	if err != nil {
		return nil, err
	}
	if f.layouts == nil {
		f.layouts = map[uint32]placed{}
	}
	f.layouts[r.id] = placed{r, l}
	return l, nil
}

// admit looks at a column of the stream: whether its type is the one that is known, and whether it is new.
func (f *follower) admit(c relationColumn) error {
	for _, known := range f.table.served {
		if known.name == c.name {
			if known.typ != c.typ {
				return fmt.Errorf("%w: column %.63q has another type", errChanged, c.name)
			}
			return nil
		}
	}
	for _, name := range f.table.known {
		if name == c.name {
			return nil // it is not served
		}
	}
	switch {
	case len(f.source.table.Columns) > 0:
		return nil
	case c.typ >= firstUserType:
		return fmt.Errorf("%w: column %.63q is new", errChanged, c.name)
	}
	f.table.known = append(f.table.known, c.name)
	f.table.served = append(f.table.served, newColumn(c.name, c.typ, c.typ))
	return nil
}

// errGone is the error of a table that is not the one that was described before its snapshot was made.
var errGone = errors.New("the table changed while its snapshot was made, and is read again")
