package nats

import (
	"bytes"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/watchtide/watchtide/stream"
)

// checkpoint is the known state of a bucket. It outlives connections, so that the
// next one can determine whether the bucket is the same, and which keys have
// vanished.
//
// Owned by Watch.
type checkpoint struct {
	epoch string
	keys  map[string]version // of all keys that have a message, including deleted ones

	// The positions from which a reader holds no other keys than these: a
	// reader at an older one may hold a key that has vanished.
	from uint64
	// committed is the position up to which everything was passed on.
	committed uint64

	// witness is the newest message that was read, by which the bucket is
	// recognised.
	witness message
	// youngest is the time of the youngest message: nothing with an older
	// sequence is younger.
	youngest int64

	recalled bool                // it is that of another process: deleted keys that have a message are not among the keys
	served   *stream.Resource    // of it, what the witness was; nil: it was a delete, or is known
	gone     map[string]struct{} // the keys of which it may have been a delete
}

// recall returns the checkpoint of another process, which had reached a place with these resources. The message at
// that place is its witness.
func recall(at stream.Resume, resources, deletes iter.Seq[stream.Resource]) *checkpoint {
	k := newCheckpoint(at.Epoch)
	k.from, k.committed, k.youngest, k.recalled = at.Revision, at.Revision, math.MaxInt64, true
	for r := range resources {
		k.keys[strings.Clone(r.Key)] = version{sequence: r.Revision}
		if r.Revision == at.Revision {
			r.Key, r.Value = strings.Clone(r.Key), bytes.Clone(r.Value)
			k.witness.sequence, k.served = r.Revision, &r
		}
	}
	if k.served != nil {
		return k
	}
	k.gone = map[string]struct{}{}
	for r := range deletes { // those that were only noticed at that place are among them
		if r.Revision == at.Revision {
			k.witness.sequence, k.gone[strings.Clone(r.Key)] = r.Revision, struct{}{}
		}
	}
	return k
}

// is reports whether a message is the witness.
func (k *checkpoint) is(m message, b *bucket) bool {
	key, ours := strings.CutPrefix(m.subject, b.prefix)
	switch _, gone := k.gone[key]; {
	case k.served == nil && k.gone == nil:
		return m.sequence > 0 && m.time.Equal(k.witness.time)
	case !ours || k.served == nil && !gone || k.served != nil && key != k.served.Key:
		return false
	}
	was := nats.NewMsg(m.subject)
	was.Data = m.data
	if len(m.header) > 0 {
		header, err := nats.DecodeHeadersMsg(m.header)
		if err != nil {
			return false
		}
		was.Header = header
	}
	if k.served == nil || operation(was) == deleted {
		return k.served == nil && operation(was) == deleted
	}
	value, encoding := b.config.Values.Value(m.data)
	return encoding == k.served.Encoding && bytes.Equal(value, k.served.Value)
}

// learn adds the keys of another process that have a message and were deleted.
func (k *checkpoint) learn(present map[string]uint64, prefix string) {
	for subject := range present {
		key := strings.TrimPrefix(subject, prefix)
		if _, known := k.keys[key]; !known {
			k.keys[key] = version{deleted: true}
		}
	}
	k.recalled = false
}

// version is the known version of a key.
type version struct {
	sequence uint64
	deleted  bool
}

func newCheckpoint(epoch string) *checkpoint {
	return &checkpoint{epoch: epoch, keys: map[string]version{}}
}

// note records a message.
func (k *checkpoint) note(d delivery) {
	k.keys[d.key] = version{sequence: d.sequence, deleted: d.kind == deleted}
	k.witness, k.served = message{sequence: d.sequence, time: time.Unix(0, d.time)}, nil
	k.gone = nil
	if k.youngest == math.MaxInt64 {
		k.youngest = 0 // that of another process was not known, and this one is younger
	}
	k.youngest = max(k.youngest, d.time)
}

// contradicts reports that a message is impossible: no message at or below a
// sequence that was read is younger than all messages read, unless the bucket
// was restored from a backup and written to since.
func (k *checkpoint) contradicts(d delivery) bool {
	return k != nil && d.sequence <= k.witness.sequence && d.time > k.youngest
}

// resumes reports whether a reader at a position needs only the later messages.
func (k *checkpoint) resumes(epoch string, position uint64) bool {
	return k != nil && k.epoch == epoch && k.from <= position && position <= k.committed && k.witness.sequence > 0
}

// replaces takes over the oldest resumable positions from the checkpoint before
// the snapshot that is now complete.
func (k *checkpoint) replaces(old *checkpoint) {
	k.from = k.committed
	if old == nil || old.epoch != k.epoch {
		return
	}
	for key := range old.keys {
		if _, still := k.keys[key]; !still {
			return
		}
	}
	k.from = old.from
}

// vanished returns the keys up to a sequence for which the server has no message.
func (k *checkpoint) vanished(present map[string]uint64, prefix string, sequence uint64) []string {
	var gone []string
	for key, v := range k.keys {
		if _, there := present[prefix+key]; !there && v.sequence <= sequence {
			gone = append(gone, key)
		}
	}
	return gone
}
