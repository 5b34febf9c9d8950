package log

import (
	"encoding/json"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/watchtide/watchtide/stream"
)

// segmentSize is the size of a full slab. A snapshot is read, and an id is
// sent, at least once for each slab.
const segmentSize = 64 << 10

// smallestSegment keeps watches with few resources small: slabs grow with the log up
// to segmentSize.
const smallestSegment = 4 << 10

// entry flags.
const (
	isDelete         = 1 << iota // a tombstone
	endsCommit                   // last entry of its transaction
	unnumberedDelete             // no revision of its own: it takes that of its commit
	keyEscaped                   // the key in the frame has JSON escapes
	keyBase64                    // the key in the frame is base64: it is not UTF-8
	valueBase64                  // the value is base64 in a JSON string
)

// entry is one change in a segment: where its frame is, and what is needed to find
// and judge it without reading the frame. It has 48 bytes and no pointer, so the
// garbage collector has nothing to scan.
type entry struct {
	// Written before the entry is published, static from then on.
	seq      uint64
	revision uint64 // its place in the log's order
	off      uint32 // of the frame in the slab
	size     uint32 // of the frame
	keyLen   uint32 // as in the frame
	valueLen uint32
	hash     uint32
	flags    uint8

	// superseded is the seq of the change from which on this entry no longer counts,
	// 0 while it counts. Written by the log's writer.
	superseded atomic.Uint64
}

func (e *entry) is(flag uint8) bool { return e.flags&flag != 0 }

// visible reports whether the entry counts as seen at seq.
func (e *entry) visible(seq uint64) bool {
	s := e.superseded.Load()
	return s == 0 || s > seq
}

// segment is a slab of frames and the table of its entries. The writer appends to
// the last segment of a log; readers see only as many entries as their version says.
// A full segment no longer changes, except for superseded.
type segment struct {
	// Static after construction; the bytes and entries beyond what was
	// published belong to the writer.
	name    uint64 // no other segment of this process has, or had, it
	born    uint64 // number of the first version that holds it
	slab    []byte
	entries []entry

	// Owned by the writer; static, and so readable, once the segment is full.
	n    int // entries in use
	used int // bytes in use

	// Owned by the writer.
	dead int // bytes of superseded entries
}

// segmentNames is the last name given out.
var segmentNames atomic.Uint64

func newSegment(born uint64, bytes, entries int) *segment {
	return &segment{name: segmentNames.Add(1), born: born, slab: make([]byte, bytes), entries: make([]entry, entries)}
}

// bytes is the memory that the segment holds.
func (s *segment) bytes() int64 {
	return int64(len(s.slab)) + int64(len(s.entries))*int64(unsafe.Sizeof(entry{}))
}

func (s *segment) fits(frame int) bool {
	return s.n < len(s.entries) && s.used+frame <= len(s.slab)
}

// next reserves the next entry and size bytes for its frame.
func (s *segment) next(size int) (*entry, []byte) {
	e := &s.entries[s.n]
	e.off, e.size = uint32(s.used), uint32(size)
	frame := s.slab[s.used : s.used : s.used+size]
	s.n++
	s.used += size
	return e, frame
}

// take appends a copy of a live entry of another segment.
func (s *segment) take(from *segment, e *entry) {
	to, frame := s.next(int(e.size))
	to.seq, to.revision = e.seq, e.revision
	to.keyLen, to.valueLen = e.keyLen, e.valueLen
	to.hash, to.flags = e.hash, e.flags
	_ = append(frame, from.frame(e)...)
}

func (s *segment) frame(e *entry) []byte { return s.slab[e.off : e.off+e.size] }

// framing holds what the frames of a log have in common.
type framing struct {
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

func newFraming(watch string) framing {
	begin := func(t stream.EventType) (frame string, json int) {
		head := "event: " + t.String() + dataField
		return head + `{"type":"` + t.String() + `","watch":"` + watch + `","key":"`, len(head)
	}
	var f framing
	f.upsert, f.jsonUpsert = begin(stream.Upsert)
	f.delete, f.jsonDelete = begin(stream.Delete)
	return f
}

// keyAt is where the key begins in the frame of e.
func (f *framing) keyAt(e *entry) int {
	if e.is(isDelete) {
		return len(f.delete)
	}
	return len(f.upsert)
}

// jsonAt is where the data object begins in the frame of e.
func (f *framing) jsonAt(e *entry) int {
	if e.is(isDelete) {
		return f.jsonDelete
	}
	return f.jsonUpsert
}

// wireKey is a key as written in a frame.
type wireKey struct {
	text  string // without the quotes
	hash  uint32
	flags uint8
}

func newWireKey(key string) wireKey {
	text, flags := key, uint8(0)
	if !stream.PlainText(key) {
		text, flags = quoteKey(key)
	}
	return wireKey{text: text, hash: hashKey(text), flags: flags}
}

// quoteKey handles keys that cannot be in a JSON string unescaped.
func quoteKey(key string) (text string, flags uint8) {
	wire, encoding := stream.WireKey(key)
	if encoding != "" {
		return wire, keyBase64
	}
	quoted := stream.AppendJSONString(nil, key)
	return string(quoted[1 : len(quoted)-1]), keyEscaped
}

// frameSize is the exact size of the frame that appendFrame makes.
func (f *framing) frameSize(c *Change, k wireKey) int {
	n := len(k.text) + len(afterKey) + decimalDigits(c.Revision) + 1 + len(frameEnd)
	if k.flags&keyBase64 != 0 {
		n += len(keyEncodingField)
	}
	if c.Deleted {
		return n + len(f.delete)
	}
	if c.Encoding != "" {
		n += len(encodingField)
	}
	return n + len(f.upsert) + len(valueField) + len(c.Value)
}

func (f *framing) appendFrame(dst []byte, c *Change, k wireKey) []byte {
	if c.Deleted {
		dst = append(dst, f.delete...)
	} else {
		dst = append(dst, f.upsert...)
	}
	dst = append(dst, k.text...)
	dst = append(dst, afterKey...)
	dst = strconv.AppendUint(dst, c.Revision, 10)
	dst = append(dst, '"')
	if k.flags&keyBase64 != 0 {
		dst = append(dst, keyEncodingField...)
	}
	if c.Deleted {
		return append(dst, frameEnd...)
	}
	if c.Encoding != "" {
		dst = append(dst, encodingField...)
	}
	dst = append(dst, valueField...)
	dst = append(dst, c.Value...)
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

// keyEquals reports whether the entry's key is k, without an allocation.
func (f *framing) keyEquals(s *segment, e *entry, k wireKey) bool {
	if int(e.keyLen) != len(k.text) || e.flags&(keyEscaped|keyBase64) != k.flags {
		return false
	}
	return string(f.rawKey(s, e)) == k.text
}

// rawKey is the key as written in the frame.
func (f *framing) rawKey(s *segment, e *entry) []byte {
	at := int(e.off) + f.keyAt(e)
	return s.slab[at : at+int(e.keyLen)]
}

// key is the key as the upstream has it.
func (f *framing) key(s *segment, e *entry) string {
	raw := f.rawKey(s, e)
	switch {
	case e.is(keyBase64):
		key, err := stream.KeyFromWire(string(raw), stream.Base64)
		if err != nil {
			panic("stream: the log holds a key that is not base64: " + err.Error())
		}
		return key
	case e.is(keyEscaped):
		var key string
		at := int(e.off) + f.keyAt(e)
		if err := json.Unmarshal(s.slab[at-1:at+int(e.keyLen)+1], &key); err != nil {
			panic("stream: the log holds a key that is not JSON: " + err.Error())
		}
		return key
	}
	return string(raw)
}

// value aliases the slab; nil for a tombstone.
func (s *segment) value(e *entry) []byte {
	if e.is(isDelete) {
		return nil
	}
	end := e.off + e.size - uint32(len(frameEnd))
	return s.slab[end-e.valueLen : end : end]
}

// shownRevision is the revision in the frame. For an unnumbered delete it is not
// the entry's place in the log.
func (f *framing) shownRevision(s *segment, e *entry) uint64 {
	if !e.is(unnumberedDelete) {
		return e.revision
	}
	at := int(e.off) + f.keyAt(e) + int(e.keyLen) + len(afterKey)
	end := at
	for s.slab[end] != '"' {
		end++
	}
	n, err := strconv.ParseUint(string(s.slab[at:end]), 10, 64)
	if err != nil {
		panic("stream: the log holds a revision that is not a number: " + err.Error())
	}
	return n
}

// event returns the entry as a value.
func (f *framing) event(watch string, s *segment, e *entry) stream.Event {
	ev := stream.Event{Type: stream.Upsert, Watch: watch, Resource: stream.Resource{
		Key:      f.key(s, e),
		Revision: f.shownRevision(s, e),
		Value:    s.value(e),
	}}
	if e.is(isDelete) {
		ev.Type = stream.Delete
	}
	if e.is(valueBase64) {
		ev.Resource.Encoding = stream.Base64
	}
	return ev
}
