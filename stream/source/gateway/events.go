package gateway

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/stream"
)

func (r *reader) upsert(m client.Resource) error {
	key, err := r.key(m)
	if err != nil {
		return err
	}
	revision, err := r.revision(m.Revision)
	if err != nil {
		return err
	}
	value, ok := textOf(m.Value)
	switch {
	case !ok:
		return r.invalid("value of key %q is %.40q: want JSON in UTF-8", key, m.Value)
	case revision == 0:
		return r.invalid("revision of key %q is 0: want 1 or more", key)
	case m.Encoding != "" && m.Encoding != stream.Base64:
		return r.invalid("encoding of key %q is %q: want %q or nothing", key, m.Encoding, stream.Base64)
	}
	r.upserts++
	r.open, r.loose = true, true
	return r.sink.Upsert(stream.Resource{Key: key, Revision: revision, Value: value, Encoding: m.Encoding})
}

// textOf returns a value as it is stored. It was checked to be JSON when the
// event was read; checking twice would take a tenth of the time of a snapshot.
func textOf(value []byte) (text []byte, ok bool) {
	if bytes.IndexByte(value, '\n') >= 0 { // of an event of several data lines
		return stream.CompactJSON(value)
	}
	return bytes.TrimSpace(value), len(value) > 0 && utf8.Valid(value)
}

func (r *reader) delete(m client.Resource) error {
	key, err := r.key(m)
	if err != nil {
		return err
	}
	revision, err := r.revision(m.Revision)
	if err != nil {
		return err
	}
	r.open, r.loose = true, true
	return r.sink.Delete(key, revision)
}

// key reads the key of a change, which can only come after a reset or a position.
func (r *reader) key(m client.Resource) (string, error) {
	key, err := stream.KeyFromWire(m.Key, m.KeyEncoding)
	switch {
	case err != nil:
		return "", r.invalid("key %q: %v", m.Key, err)
	case r.phase == opening:
		return "", r.invalid("a change of key %q before reset: want reset first", key)
	}
	return key, nil
}

func (r *reader) revision(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, r.invalid("revision %.40q: want a decimal number in quotation marks", text)
	}
	return n, nil
}

// status passes on the upstream's freshness. Catching up is that of a subscriber,
// in this case ours: it only marks the start of a transaction.
func (r *reader) status(e client.Event) error {
	state, known := stream.ParseState(e.State)
	switch {
	case !known:
		return nil // from a newer gateway
	case state == stream.CatchingUp:
		r.catchUp = true
		return nil
	}
	r.heard = true
	reason := e.Reason
	if reason == "" && state != stream.InSync {
		reason = state.String()
	}
	return r.passOn(state, reason)
}

func (r *reader) passOn(state stream.State, reason string) error {
	r.told = state
	return r.sink.Status(state, reason)
}

// commitAt ends the snapshot or the transaction if the event does.
func (r *reader) commitAt(e client.Event, place *stream.Position) error {
	if e.Type == "end_of_snapshot" {
		return r.endOfSnapshot(e)
	}
	switch marker := e.Type == "bookmark"; {
	case r.phase != live:
		return nil
	case marker:
		return r.progress(e)
	case place == nil || place.Partial() || r.catchUp || !r.open:
		return nil
	}
	return r.commit(place.Upserts)
}

// progress ends a transaction, or a catch-up. The id may be in an event that
// follows, or be missing.
func (r *reader) progress(e client.Event) error {
	revision, err := r.revision(e.Revision)
	if err != nil {
		return err
	}
	r.catchUp = false
	return r.commit(revision)
}

// horizon passes on that the upstream may have missed changes, before anything
// that follows.
func (r *reader) horizon(text string) error {
	revision, err := r.revision(text)
	if err != nil {
		return err
	}
	return stream.RaiseHorizon(r.sink, revision)
}

// endOfSnapshot ends a snapshot, or what was newer than the position asked for.
func (r *reader) endOfSnapshot(e client.Event) error {
	revision, err := r.revision(e.Revision)
	switch {
	case err != nil:
		return err
	case r.phase == opening:
		return r.invalid("end_of_snapshot before reset: want reset first")
	case r.phase == snapshot && e.Count > r.upserts:
		return r.invalid("end_of_snapshot counts %d resources, %d came", e.Count, r.upserts)
	}
	resumed := r.phase == resuming
	r.phase, r.catchUp = live, false
	if err := r.commit(revision); err != nil {
		return err
	}
	if r.heard && r.told != stream.InSync {
		return nil // the upstream itself is not
	}
	if !resumed && (r.told == 0 || r.told == stream.InSync) {
		return nil // a snapshot implies it
	}
	// It has caught up. An earlier request, or this gateway itself, may have
	// reported that the watch is not in sync; the upstream has not, this time.
	return r.passOn(stream.InSync, "")
}

// commit ends a transaction. The next request resumes there.
func (r *reader) commit(revision uint64) error {
	stream.Swept(r.sink, r.position.Swept())
	r.position = r.position.At(revision)
	r.open, r.loose = false, false
	return r.sink.Commit(revision)
}
