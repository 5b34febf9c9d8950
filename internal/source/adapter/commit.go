package adapter

import "github.com/watchtide/watchtide/stream"

// status passes on the upstream's freshness. CatchingUp is the state of a
// subscriber, in this case ours: it only marks the start of a transaction.
func (r *Reader) status(e *Event) error {
	switch e.State {
	case 0:
		return nil // from a newer server
	case stream.CatchingUp:
		r.catchUp = true
		return nil
	}
	r.heard = true
	reason := e.Reason
	if reason == "" && e.State != stream.InSync {
		reason = e.State.String() // ingest adds the origin
	}
	return r.Report(e.State, reason)
}

// Report passes on the freshness of the watch.
func (r *Reader) Report(state stream.State, reason string) error {
	r.reported = state
	return r.Sink.Status(state, reason)
}

// commitAt commits if the event ends a snapshot or a transaction.
func (r *Reader) commitAt(e *Event, place *stream.Position) error {
	if e.Type == EndOfSnapshot {
		return r.endOfSnapshot(e)
	}
	if r.phase != live {
		return nil
	}
	revision, ends := r.endsTransaction(e, place)
	if !ends {
		return nil
	}
	if r.open && (r.catchUp || r.committed < r.conflated) {
		r.Sink.Conflated()
	}
	r.catchUp = r.catchUp && e.Type != Bookmark
	return r.commit(revision)
}

// endsTransaction reports whether everything up to a revision has been received. The
// position may be in an event that follows, or be missing.
func (r *Reader) endsTransaction(e *Event, place *stream.Position) (revision uint64, ends bool) {
	switch {
	case place != nil && place.Partial(), r.catchUp && e.Type != Bookmark:
		return 0, false
	case place != nil:
		return place.Upserts, r.open || e.Type == Bookmark || place.Upserts > r.committed
	case e.Type == Bookmark:
		return e.Revision, true
	case r.position.Epoch != "": // the next position ends it
		return 0, false
	}
	return e.changeRevision(r.committed)
}

// endOfSnapshot ends a snapshot, the changes after the requested position, or a
// catch-up.
func (r *Reader) endOfSnapshot(e *Event) error {
	switch {
	case r.phase == opening:
		return r.Invalid("end_of_snapshot before reset: want reset first")
	case r.phase == snapshot && e.Count > r.upserts:
		return r.Invalid("end_of_snapshot counts %d resources, %d came", e.Count, r.upserts)
	case !r.begun:
		if err := r.begin(r.Unnamed); err != nil {
			return err
		}
	}
	if r.phase == snapshot {
		r.enter(r.position.Epoch) // by now it would have been named
	}
	resumed := r.phase == resuming
	if resumed && r.open {
		r.Sink.Conflated()
	}
	r.forget()
	r.phase, r.catchUp = live, false
	if err := r.commit(e.Revision); err != nil {
		return err
	}
	if r.heard && r.reported != stream.InSync {
		return nil // the upstream itself is not
	}
	if !resumed && (r.reported == 0 || r.reported == stream.InSync) {
		return nil // a snapshot implies it
	}
	// It has caught up. An earlier connection, or this gateway itself, may have
	// reported that the watch is not in sync; the upstream has not, this time.
	return r.Report(stream.InSync, "")
}

// commit ends a transaction. The next connection resumes there.
func (r *Reader) commit(revision uint64) error {
	if r.position.Epoch != "" {
		r.Sink.DeletesCompleteTo(r.position.Swept())
		r.position = r.position.At(revision)
	}
	r.committed, r.open, r.loose = revision, false, false
	return r.Sink.Commit(revision)
}
