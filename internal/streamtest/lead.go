package streamtest

import (
	"maps"

	"github.com/watchtide/watchtide/stream"
)

// lead has the changes after the last id of a subscriber that applies each event at
// once, by key. It is empty for a subscriber that applies events when an id arrives,
// and drops the others when its connection ends.
//
// A replica that is behind does not have them, and replays earlier changes. So until
// the replica has passed what the subscriber had received, each of these keys may go
// back, but not to anything older than the id. And if the replica loses its upstream
// before that and recovers by a snapshot, it never gets the resources created and
// deleted meanwhile, and the subscriber keeps those until the next reset.
//
// Never modified, only replaced.
type lead map[string]ahead

// ahead is one key of a lead.
type ahead struct {
	atID        Version // the zero Version: nothing
	upTo        uint64  // position of the replica that sent the change beyond the id
	unknownUpTo uint64  // the greatest horizon reported before upTo was passed; 0: none
}

// leadOf returns the lead of a subscriber that comes with an id and a state.
func leadOf(from *Mark, begin State, upTo uint64) lead {
	if from == nil {
		return nil
	}
	out := lead{}
	for _, key := range sortedKeys(begin, from.State) {
		if begin[key] != from.State[key] {
			out[key] = ahead{atID: from.State[key], upTo: upTo}
		}
	}
	for key, a := range from.lead {
		if own, more := out[key]; more {
			a.upTo, a.unknownUpTo = max(a.upTo, own.upTo), 0
		}
		out[key] = a
	}
	return out
}

// after is the lead after an event. A bookmark that is sent as the subscriber
// joins repeats its own position, and adds nothing.
func (l lead) after(e *stream.Event, joins bool) lead {
	switch {
	case len(l) == 0 || e.Type == stream.Reset:
		return nil
	case e.Type == stream.Bookmark && joins:
		return l
	case e.Type == stream.Bookmark, e.Type == stream.EndOfSnapshot:
		return l.passed(e.Revision)
	}
	return l
}

// told is the lead after an event that may report a horizon. A horizon reported as
// the subscriber joins excuses nothing: the replica need not have accepted the id.
func (l lead) told(e *stream.Event, joins bool) lead {
	horizon := horizonOf(e)
	if horizon == 0 || joins || len(l) == 0 {
		return l
	}
	out := maps.Clone(l)
	for key, a := range out {
		if a.upTo > 0 {
			a.unknownUpTo = max(a.unknownUpTo, horizon)
			out[key] = a
		}
	}
	return out
}

// passed is the lead once everything up to a revision has arrived.
func (l lead) passed(revision uint64) lead {
	out := l
	for key, a := range l {
		if a.upTo > revision || a.upTo == 0 {
			continue
		}
		if len(out) == len(l) {
			out = maps.Clone(l)
		}
		if delete(out, key); a.unknownUpTo > 0 {
			a.upTo = 0
			out[key] = a
		}
	}
	return out
}

// allows reports whether a subscriber may hold a version of a key, or nothing, at a
// position where the upstream had another one. versions are all versions of the
// key.
func (l lead) allows(key string, held Version, revision uint64, versions []Version) bool {
	a, ok := l[key]
	if !ok {
		return false
	}
	if a.upTo > revision {
		return a.notOlder(held, versions)
	}
	// Created and deleted within a range unknown to the replica, as it reported.
	at := place(versions, 0, held)
	if held.Revision == 0 || at < 0 {
		return false
	}
	gone := deletion(versions, at)
	return gone >= 0 && versions[gone].Revision <= a.unknownUpTo
}

// notOlder reports whether a version, or nothing, is not older than the version held
// at the id.
func (a ahead) notOlder(held Version, versions []Version) bool {
	floor := 0
	if a.atID.Revision > 0 {
		floor = max(0, place(versions, 0, a.atID))
	}
	if held.Revision > 0 {
		return place(versions, floor, held) >= 0
	}
	return a.atID.Revision == 0 || deletion(versions, floor) >= 0
}

// horizonOf returns the horizon in a bookmark.
func horizonOf(e *stream.Event) uint64 { return e.Horizon }
