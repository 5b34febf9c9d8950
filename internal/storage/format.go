package storage

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/watchtide/watchtide/stream"
)

// Format writes and reads the frames of one log.
type Format struct {
	watch  string
	upsert string // up to the key
	delete string
	// jsonUpsert and jsonDelete are where the data object begins in a frame.
	jsonUpsert, jsonDelete int
}

const (
	afterKey         = `","revision":"`
	keyEncodingField = `,"key_encoding":"base64"`
	encodingField    = `,"encoding":"base64"`
	valueField       = `,"value":`
	frameEnd         = "}\n\n"
	dataField        = "\ndata: "
)

// NewFormat returns the format of the log of a watch.
func NewFormat(watch string) *Format {
	begin := func(t stream.EventType) (frame string, json int) {
		head := "event: " + t.String() + dataField
		return head + `{"type":"` + t.String() + `","watch":"` + watch + `","key":"`, len(head)
	}
	f := &Format{watch: watch}
	f.upsert, f.jsonUpsert = begin(stream.Upsert)
	f.delete, f.jsonDelete = begin(stream.Delete)
	return f
}

// keyAt is where the key begins in the frame of e.
func (f *Format) keyAt(e *Entry) int {
	if e.Is(IsDelete) {
		return len(f.delete)
	}
	return len(f.upsert)
}

// JSONAt is where the data object begins in the frame of e.
func (f *Format) JSONAt(e *Entry) int {
	if e.Is(IsDelete) {
		return f.jsonDelete
	}
	return f.jsonUpsert
}

// Overhead is the most bytes that a frame of an upsert has besides its key and value.
func (f *Format) Overhead() int {
	return len(f.upsert) + len(afterKey) + 20 + len(valueField) + len(encodingField) + len(frameEnd)
}

// FrameSize is the exact size of the frame that AppendFrame appends.
func (f *Format) FrameSize(r *stream.Resource, deleted bool, k Key) int {
	n := len(k.Text) + len(afterKey) + decimalDigits(r.Revision) + 1 + len(frameEnd)
	if k.Flags&keyBase64 != 0 {
		n += len(keyEncodingField)
	}
	if deleted {
		return n + len(f.delete)
	}
	if r.Encoding != "" {
		n += len(encodingField)
	}
	return n + len(f.upsert) + len(valueField) + len(r.Value)
}

// AppendFrame appends the frame of an upsert or a delete.
func (f *Format) AppendFrame(dst []byte, r *stream.Resource, deleted bool, k Key) []byte {
	if deleted {
		dst = append(dst, f.delete...)
	} else {
		dst = append(dst, f.upsert...)
	}
	dst = append(dst, k.Text...)
	dst = append(dst, afterKey...)
	dst = strconv.AppendUint(dst, r.Revision, 10)
	dst = append(dst, '"')
	if k.Flags&keyBase64 != 0 {
		dst = append(dst, keyEncodingField...)
	}
	if deleted {
		return append(dst, frameEnd...)
	}
	if r.Encoding != "" {
		dst = append(dst, encodingField...)
	}
	dst = append(dst, valueField...)
	dst = append(dst, r.Value...)
	return append(dst, frameEnd...)
}

func decimalDigits(n uint64) int {
	digits := 1
	for n >= 10 {
		n /= 10
		digits++
	}
	return digits
}

// KeyEquals reports whether the entry's key is k, without an allocation.
func (f *Format) KeyEquals(s *Segment, e *Entry, k Key) bool {
	if int(e.KeyLen) != len(k.Text) || e.Flags&(keyEscaped|keyBase64) != k.Flags {
		return false
	}
	return string(f.rawKey(s, e)) == k.Text
}

// rawKey is the key as written in the frame.
func (f *Format) rawKey(s *Segment, e *Entry) []byte {
	at := int(e.Off) + f.keyAt(e)
	return s.Slab[at : at+int(e.KeyLen)]
}

// Key is the key as the upstream has it.
func (f *Format) Key(s *Segment, e *Entry) string {
	raw := f.rawKey(s, e)
	switch {
	case e.Is(keyBase64):
		key, err := stream.KeyFromWire(string(raw), stream.Base64)
		if err != nil {
			panic("stream: the log holds a key that is not base64: " + err.Error())
		}
		return key
	case e.Is(keyEscaped):
		var key string
		at := int(e.Off) + f.keyAt(e)
		if err := json.Unmarshal(s.Slab[at-1:at+int(e.KeyLen)+1], &key); err != nil {
			panic("stream: the log holds a key that is not JSON: " + err.Error())
		}
		return key
	}
	return string(raw)
}

// KeyOf is the key as a Key.
func (f *Format) KeyOf(s *Segment, e *Entry) Key {
	return Key{Text: string(f.rawKey(s, e)), Hash: e.Hash, Flags: e.Flags & (keyEscaped | keyBase64)}
}

// ShownRevision is the revision in the frame. For an unnumbered delete it is not
// the entry's place in the log.
func (f *Format) ShownRevision(s *Segment, e *Entry) uint64 {
	if !e.Is(UnnumberedDelete) {
		return e.Revision
	}
	at, end := f.shownRevision(s, e)
	n, err := strconv.ParseUint(string(s.Slab[at:end]), 10, 64)
	if err != nil {
		panic("stream: the log holds a revision that is not a number: " + err.Error())
	}
	return n
}

// shownRevision is where the digits of the revision are in the slab.
func (f *Format) shownRevision(s *Segment, e *Entry) (from, to int) {
	from = int(e.Off) + f.keyAt(e) + int(e.KeyLen) + len(afterKey)
	to = from
	for s.Slab[to] != '"' {
		to++
	}
	return from, to
}

// value aliases the slab; nil for a tombstone.
func (f *Format) value(s *Segment, e *Entry) []byte {
	if e.Is(IsDelete) {
		return nil
	}
	_, at := f.shownRevision(s, e)
	at += 1 + len(valueField)
	if e.Is(keyBase64) {
		at += len(keyEncodingField)
	}
	if e.Is(ValueBase64) {
		at += len(encodingField)
	}
	end := int(e.Off+e.Size) - len(frameEnd)
	return s.Slab[at:end:end]
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
	ev := stream.Event{Type: stream.Upsert, Watch: f.watch, Resource: stream.Resource{
		Key:      f.Key(s, e),
		Revision: f.ShownRevision(s, e),
		Value:    f.value(s, e),
	}}
	if e.Is(IsDelete) {
		ev.Type, ev.Unseen = stream.Delete, e.Is(Unseen)
	}
	if e.Is(ValueBase64) {
		ev.Resource.Encoding = stream.Base64
	}
	return ev
}
