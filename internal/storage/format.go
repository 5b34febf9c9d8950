package storage

import (
	"bytes"
	"hash/maphash"

	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
)

// Format reads the entries of one log, and writes their frames.
type Format struct {
	frame.Changes
	window bool // the frames have revisions of their own
}

// NewFormat returns the format of the log of a watch.
func NewFormat(watch string) *Format { return &Format{Changes: frame.ChangesOf(watch)} }

// NewWindowFormat returns the format of the log of a window. A resource that enters the window has an
// older revision than the place of its entry.
func NewWindowFormat(watch string) *Format {
	return &Format{Changes: frame.ChangesOf(watch), window: true}
}

// KeyEquals reports whether the entry's key is k, without an allocation.
func (f *Format) KeyEquals(s *Segment, e *Entry, k Key) bool {
	if int(e.KeyLen) != len(k.Text) || e.Flags&(keyEscaped|keyBase64) != k.Flags {
		return false
	}
	return string(f.RawKeyOf(s, e)) == k.Text
}

// RawKeyOf is the key as written in the frame.
func (f *Format) RawKeyOf(s *Segment, e *Entry) []byte {
	return f.RawKey(s.Frame(e), e.Is(IsDelete), int(e.KeyLen))
}

// Key is the key as the upstream has it.
func (f *Format) Key(s *Segment, e *Entry) string {
	return f.KeyIn(s.Frame(e), e.Is(IsDelete), int(e.KeyLen), e.Is(keyBase64), e.Is(keyEscaped))
}

// KeyOf is the key as a Key.
func (f *Format) KeyOf(s *Segment, e *Entry) Key {
	return Key{
		Key:  frame.Key{Text: string(f.RawKeyOf(s, e)), Base64: e.Is(keyBase64), Escaped: e.Is(keyEscaped)},
		Hash: e.Hash, Flags: e.Flags & (keyEscaped | keyBase64),
	}
}

// ShownRevision is the revision in the frame. For an unnumbered delete, and in a window, it is not
// the entry's place in the log.
func (f *Format) ShownRevision(s *Segment, e *Entry) uint64 {
	if !f.window && !e.Is(UnnumberedDelete) {
		return e.Revision
	}
	return f.RevisionIn(s.Frame(e), e.Is(IsDelete), int(e.KeyLen))
}

// value aliases the slab; nil for a tombstone.
func (f *Format) value(s *Segment, e *Entry) []byte {
	if e.Is(IsDelete) {
		return nil
	}
	return f.ValueIn(s.Frame(e), int(e.KeyLen), e.Is(keyBase64), e.Is(ValueBase64))
}

// Repeats reports whether an upsert of the key and revision of an entry is the same change. A
// delete that took the revision of an upsert, since it has none of its own, stands for both.
func (f *Format) Repeats(s *Segment, e *Entry, r *stream.Resource) bool {
	if e.Is(IsDelete) {
		return e.Is(UnnumberedDelete)
	}
	return e.Is(ValueBase64) == (r.Encoding != "") && bytes.Equal(f.value(s, e), r.Value)
}

// Event returns the entry as a value.
func (f *Format) Event(s *Segment, e *Entry) stream.Event {
	ev := stream.Event{Type: stream.Upsert, Watch: f.Watch(), Resource: stream.Resource{
		Key:      f.Key(s, e),
		Revision: f.ShownRevision(s, e),
		Value:    f.value(s, e),
	}}
	if e.Is(IsDelete) {
		ev.Type, ev.Unseen = stream.Delete, e.Is(Unseen)
		ev.Left = f.IsLeft(s, e)
	}
	if e.Is(ValueBase64) {
		ev.Resource.Encoding = stream.Base64
	}
	return ev
}

// IsLeft reports whether a delete says that the resource has left the window only.
func (f *Format) IsLeft(s *Segment, e *Entry) bool { return f.window && frame.IsLeft(s.Frame(e)) }

// Key is a key as written in a frame, with what finds its entries.
type Key struct {
	frame.Key
	Hash  uint32
	Flags uint8 // of entries with this key
}

// NewKey returns a key as the frames of every log have it.
func NewKey(key string) Key {
	k := Key{Key: frame.NewKey(key)}
	k.Hash = hashKey(k.Text)
	switch {
	case k.Base64:
		k.Flags = keyBase64
	case k.Escaped:
		k.Flags = keyEscaped
	}
	return k
}

// hashSeed is shared by the whole process: hashes never leave it.
var hashSeed = maphash.MakeSeed()

func hashKey(wire string) uint32 {
	h := maphash.String(hashSeed, wire)
	return uint32(h>>32) ^ uint32(h)
}
