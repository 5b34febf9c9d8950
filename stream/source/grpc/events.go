package grpc

import (
	"fmt"
	"strings"
	"time"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

func (r *reader) upsert(m *pb.Resource) error {
	res, err := r.resource(m)
	if err != nil {
		return err
	}
	r.upserts++
	return r.change(change{resource: res})
}

func (r *reader) delete(m *pb.Delete) error {
	key, err := r.key(m.GetKey(), m.GetKeyEncoding())
	if err != nil {
		return err
	}
	return r.change(change{resource: stream.Resource{Key: key, Revision: m.GetRevision()}, deleted: true})
}

// resource checks a received resource. Its value aliases the message,
// which has no other user.
func (r *reader) resource(m *pb.Resource) (stream.Resource, error) {
	if m == nil {
		return stream.Resource{}, r.invalid("upsert without a resource")
	}
	key, err := r.key(m.GetKey(), m.GetKeyEncoding())
	if err != nil {
		return stream.Resource{}, err
	}
	value, ok := stream.CompactJSON(m.GetValue())
	switch {
	case !ok:
		return stream.Resource{}, r.invalid("value of key %q is %.40q: want JSON text in UTF-8", key, m.GetValue())
	case m.GetRevision() == 0:
		return stream.Resource{}, r.invalid("revision of key %q is 0: want 1 or more", key)
	case m.GetEncoding() != "" && m.GetEncoding() != stream.Base64:
		return stream.Resource{}, r.invalid("encoding of key %q is %q: want %q or nothing", key, m.GetEncoding(), stream.Base64)
	}
	return stream.Resource{Key: key, Revision: m.GetRevision(), Value: value, Encoding: m.GetEncoding()}, nil
}

func (r *reader) key(wire, encoding string) (string, error) {
	key, err := stream.KeyFromWire(wire, encoding)
	if err != nil {
		return "", r.invalid("key %q: %v", wire, err)
	}
	return key, nil
}

// change passes a change on, and stores it while the epoch is unknown. An
// upstream need not narrow: keys outside the prefix are left out.
func (r *reader) change(c change) error {
	switch {
	case r.phase == opening:
		return r.invalid("a change of key %q before reset: want reset first", c.resource.Key)
	case !strings.HasPrefix(c.resource.Key, r.prefix):
		return nil
	case !r.begun:
		if err := r.begin(""); err != nil {
			return err
		}
	}
	if r.phase == snapshot && r.epoch == "" {
		r.said = append(r.said, c)
	}
	return r.pass(c)
}

func (r *reader) pass(c change) error {
	if c.deleted {
		return r.sink.Delete(c.resource.Key, c.resource.Revision)
	}
	return r.sink.Upsert(c.resource)
}

// status passes on the upstream's freshness. Catching up is that of a
// subscriber, in this case ours: it only marks the start of a transaction.
func (r *reader) status(m *pb.Status) error {
	state, known := stream.ParseState(m.GetState())
	switch {
	case !known:
		return nil // from a newer server
	case state == stream.CatchingUp:
		r.catchUp = true
		return nil
	}
	r.told = state
	return r.sink.Status(state, reason(state, m.GetReason()))
}

// reason is the upstream's, or the name of the state; ingest adds the origin.
func reason(state stream.State, upstream string) string {
	if state == stream.InSync || upstream != "" {
		return upstream
	}
	return state.String()
}

// goodbye ends the call: in good order, unless the upstream no longer wants
// to serve us.
func (r *reader) goodbye(m *pb.Goodbye) error {
	r.retry = time.Duration(m.GetRetryMs()) * time.Millisecond
	switch reason := stream.GoodbyeReason(m.GetReason()); reason {
	case stream.GoodbyeMaxAge:
		r.retry = 0
	case stream.GoodbyeTokenExpired, stream.GoodbyeRevoked, stream.GoodbyeWatchRemoved:
		return fmt.Errorf("%s: goodbye, %s", r.where, reason)
	}
	return errGoodbye
}

// commitAt ends the snapshot or the transaction if the event does.
func (r *reader) commitAt(m *pb.WatchListResponse, place *stream.Position) error {
	if r.phase != live {
		return r.endOfSnapshot(m.GetEndOfSnapshot())
	}
	revision, ends := r.endsTransaction(m, place)
	if !ends {
		return nil
	}
	r.catchUp = r.catchUp && m.GetBookmark() == nil
	return r.commit(revision)
}

// endOfSnapshot ends a snapshot, or what was newer than the position asked for.
func (r *reader) endOfSnapshot(m *pb.EndOfSnapshot) error {
	switch {
	case m == nil:
		return nil
	case r.phase == opening:
		return r.invalid("end_of_snapshot before reset: want reset first")
	case r.phase == snapshot && m.GetCount() > r.upserts:
		return r.invalid("end_of_snapshot counts %d resources, %d came", m.GetCount(), r.upserts)
	case !r.begun:
		if err := r.begin(""); err != nil {
			return err
		}
	}
	r.epochs.enter(r.epoch) // by now it would have been named
	resumed := r.phase == resuming
	r.phase, r.catchUp, r.said = live, false, nil
	if err := r.commit(m.GetRevision()); err != nil || !resumed {
		return err
	}
	if r.told != 0 && r.told != stream.InSync {
		return nil // the upstream itself is not in sync
	}
	return r.sink.Status(stream.InSync, "")
}

// endsTransaction reports whether everything up to a revision has been received.
func (r *reader) endsTransaction(m *pb.WatchListResponse, place *stream.Position) (revision uint64, ends bool) {
	progress, ends := marker(m)
	switch {
	case place != nil && place.Partial(), r.catchUp && !ends:
		return 0, false
	case place != nil:
		return place.Upserts, true
	case ends:
		return progress, true
	case r.epoch != "": // the next position ends it
		return 0, false
	}
	return r.changeRevision(m)
}

// marker returns the revision of an event that says "everything up to here".
func marker(m *pb.WatchListResponse) (revision uint64, ok bool) {
	switch e := m.GetEvent().(type) {
	case *pb.WatchListResponse_Bookmark:
		return e.Bookmark.GetRevision(), true
	case *pb.WatchListResponse_EndOfSnapshot:
		return e.EndOfSnapshot.GetRevision(), true
	}
	return 0, false
}

// changeRevision is where a change is a transaction of its own. A delete may
// have no revision of its own, or an old one.
func (r *reader) changeRevision(m *pb.WatchListResponse) (revision uint64, ok bool) {
	switch e := m.GetEvent().(type) {
	case *pb.WatchListResponse_Upsert:
		return e.Upsert.GetResource().GetRevision(), true
	case *pb.WatchListResponse_Delete:
		return max(e.Delete.GetRevision(), r.committed), true
	}
	return 0, false
}

func (r *reader) commit(revision uint64) error {
	r.committed = revision
	if r.epoch != "" {
		stream.Swept(r.sink, r.swept)
	}
	return r.sink.Commit(revision)
}
