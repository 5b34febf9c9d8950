package log

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/internal/log/internal/pin"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/internal/storage"
	"github.com/watchtide/watchtide/stream"
)

const (
	// digestedShared is how long a state serves all readers that come to verify what they hold: what
	// is made of it is made once for all of them.
	digestedShared = time.Second
	// digestedKept is how long it is kept for them.
	digestedKept = 10 * time.Second
	// mostDigested is how many states that were sent to readers are kept, at most.
	mostDigested = 12
	// mostCommon is how many states are kept that no reader was sent, at most: those that other replicas keep too.
	mostCommon = 12
	// commonAfter and commonBefore say how old such a state is when it is sent to a reader: other replicas have it by
	// then, and keep it for a while.
	commonAfter, commonBefore = 200 * time.Millisecond, 5 * time.Second
	// commonFor is how long such states are kept after a reader has come to verify what it holds, or has asked for a
	// state that is not kept.
	commonFor = time.Minute
	// mostRendered is the most keys of a bucket whose rendered text is kept.
	mostRendered = 1000
	// textOverhead is what a kept text takes beside its bytes.
	textOverhead = 64
	// mostShared and mostSharedBytes bound the answers that are kept with a state: their number, and the
	// length of each.
	mostShared, mostSharedBytes = 8, 2 << 20
)

// digestedStates keeps the states that readers verify what they hold with. The zero value is empty.
//
// A reader may ask another replica for what differs than the one that has sent the digest. So each keeps a few of the
// states that it has had, and chooses them by their digests, which are the same everywhere: those whose sums have the
// smallest lower halves. A reader is sent one of these, if there is any that is old enough for the others to have it.
type digestedStates struct {
	until atomic.Int64 // when no more common states are kept, in Unix nanoseconds; 0: none was needed so far

	mu    sync.Mutex // guards the following fields
	kept  []*Digested
	asked *Digested // the newest state that a request was for, and no reader was sent; nil: none

	indexed [2]*Digested // of kept, those that were given an index last, the newer one last
}

// Digested is a state of a log that is kept for a while, so that readers that hold another one can
// find out what differs. Its methods may be called from any goroutine.
type Digested struct {
	// Static after construction.
	framing *storage.Format
	account *memory.Account
	digest  digest.Digest
	pin     *pin.Pin
	at      time.Time     // when it was kept
	common  bool          // it is kept since other replicas do
	only    bool          // it is kept for a request alone
	turn    chan struct{} // has a value while an answer is made

	among *digestedStates
	sent  time.Time // when a reader was sent it last; zero: never. Guarded by the mu of among

	index atomic.Pointer[bucketIndex] // nil: it was not asked for, or not lately
}

// bucketIndex has the entries of a state by their buckets.
type bucketIndex struct {
	// Static after construction.
	entries []indexed
	first   []int // of each bucket, and the end
	table   digest.Table

	// Guarded by mu.
	mu        sync.Mutex
	texts     map[int][]byte // of buckets, as they were rendered
	answers   []Shared       // the newest last
	textBytes int64
	forgotten bool // it is counted no more
}

// Shared is an answer about a state that is sent to all who ask the same.
type Shared struct {
	name string

	Body   []byte // must not be changed
	Coding string // of the body; "": it is the text
	Size   int    // of the text
}

func (s *Shared) bytes() int64 { return int64(len(s.name)+len(s.Body)) + textOverhead }

type indexed struct {
	segment *storage.Segment
	entry   *storage.Entry
}

func (i *bucketIndex) bytes() int64 {
	return int64(len(i.entries))*int64(unsafe.Sizeof(indexed{})) + int64(len(i.first))*int64(unsafe.Sizeof(0)) +
		int64(len(i.table))*int64(unsafe.Sizeof(digest.Digest{}))
}

// need has common states kept from now on, for a while.
func (d *digestedStates) need(now time.Time) { d.until.Store(now.Add(commonFor).UnixNano()) }

// take returns a state for a reader that comes now: v, or one that is kept and a little older, and from
// which the reader can go on to v.
func (d *digestedStates) take(l *Log, v *storage.Version) *storage.Version {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.need(now)
	d.expire(l)
	var shared *Digested
	for _, s := range d.kept {
		if s.suits(v, now) && (shared == nil || s.precedes(shared)) {
			shared = s
		}
	}
	if shared == nil {
		if shared = d.keep(l, v); shared == nil {
			return v
		}
	}
	if shared.sent.IsZero() {
		d.makeRoom(l, mostDigested, func(s *Digested) bool { return !s.sent.IsZero() }, func(a, b *Digested) bool { return a.sent.Before(b.sent) })
	}
	shared.sent = now
	return shared.pin.Version()
}

// suits reports whether the state can be sent to a reader that is to go on to v: it was sent to others a moment ago, or other
// replicas have it.
func (d *Digested) suits(v *storage.Version, now time.Time) bool {
	age := now.Sub(d.at)
	is := d.pin.Version()
	return is != nil && is.Generation == v.Generation && is.Seq >= v.Forgotten &&
		(age < digestedShared && !d.sent.IsZero() || d.common && commonAfter <= age && age < commonBefore || is.Number == v.Number)
}

// precedes reports whether a reader is sent the state rather than another one.
func (d *Digested) precedes(other *Digested) bool {
	if sent, otherSent := !d.sent.IsZero(), !other.sent.IsZero(); sent != otherSent {
		return sent
	}
	return d.digest.Lo < other.digest.Lo
}

// keep keeps a state; nil: it is kept no more. d.mu is held.
func (d *digestedStates) keep(l *Log, v *storage.Version) *Digested {
	kept := d.newState(l, v)
	if kept != nil {
		d.kept = append(d.kept, kept)
	}
	return kept
}

func (d *digestedStates) newState(l *Log, v *storage.Version) *Digested {
	held := l.pins.Keep(v)
	if held == nil {
		return nil
	}
	return &Digested{among: d, framing: l.framing, account: l.account, digest: v.Digest, pin: held, at: time.Now(), turn: make(chan struct{}, 1)}
}

// makeRoom gives up one of the states of a kind if there are so many, the first by an order. d.mu is held.
func (d *digestedStates) makeRoom(l *Log, most int, is func(*Digested) bool, before func(a, b *Digested) bool) {
	n, first := 0, -1
	for i, s := range d.kept {
		if !is(s) {
			continue
		}
		if n++; first < 0 || before(s, d.kept[first]) {
			first = i
		}
	}
	if n >= most {
		d.kept[first].giveUp(l)
		d.kept = slices.Delete(d.kept, first, first+1)
	}
}

// keepCommon keeps a state that was committed, if other replicas will keep it too.
func (d *digestedStates) keepCommon(l *Log, v *storage.Version) {
	if !v.Primed() {
		return
	}
	common := func(s *Digested) bool { return s.sent.IsZero() }
	n, largest := 0, uint64(0)
	for _, s := range d.kept {
		if s.digest == v.Digest {
			return
		}
		if common(s) {
			n, largest = n+1, max(largest, s.digest.Lo)
		}
	}
	if n >= mostCommon && v.Digest.Lo >= largest {
		return
	}
	d.makeRoom(l, mostCommon, common, func(a, b *Digested) bool { return a.digest.Lo > b.digest.Lo })
	if s := d.keep(l, v); s != nil {
		s.common = true
	}
}

// expire gives up states that nobody may ask for any more, and those that were taken away. d.mu is
// held.
func (d *digestedStates) expire(l *Log) {
	gone := func(s *Digested) bool {
		return time.Since(s.at) > digestedKept && time.Since(s.sent) > digestedKept || s.pin.Version() == nil
	}
	d.kept = slices.DeleteFunc(d.kept, func(s *Digested) bool {
		is := gone(s)
		if is {
			s.giveUp(l)
		}
		return is
	})
	if d.asked != nil && gone(d.asked) {
		d.asked.giveUp(l)
		d.asked = nil
	}
}

func (d *Digested) giveUp(l *Log) {
	l.pins.Release(d.pin)
	d.forgetIndex()
}

// forgetIndex frees the memory of the index. It is made again if it is asked for.
func (d *Digested) forgetIndex() {
	index := d.index.Swap(nil)
	if index == nil {
		return
	}
	index.mu.Lock()
	defer index.mu.Unlock()
	index.forgotten = true
	d.account.Supersede(-index.bytes() - index.textBytes)
}

// keepDigested gives up states that nobody may ask for any more, and keeps the new one if other replicas do.
func (l *Log) keepDigested(v *storage.Version) {
	d := &l.digested
	until := d.until.Load()
	if until == 0 || !d.mu.TryLock() { // a reader that holds it does the same
		return
	}
	defer d.mu.Unlock()
	d.expire(l)
	if time.Now().UnixNano() < until {
		d.keepCommon(l, v)
	}
}

// Digested returns the state with a digest: one that was sent to a reader that resumed within the
// last 10 seconds, here or at another replica, or the newest one. It returns false if there is neither. A state for which
// nobody but a request has asked takes the place of another such state alone.
func (l *Log) Digested(of digest.Digest) (*Digested, bool) {
	d := &l.digested
	d.mu.Lock()
	defer d.mu.Unlock()
	d.need(time.Now())
	d.expire(l)
	for _, s := range d.kept {
		if s.digest == of {
			return s, true
		}
	}
	if d.asked != nil && d.asked.digest == of {
		return d.asked, true
	}
	v := l.newest()
	if !v.Primed() || v.Digest != of {
		return nil, false
	}
	s := d.newState(l, v)
	if s == nil {
		return nil, false
	}
	if d.asked != nil {
		d.asked.giveUp(l)
	}
	s.only, d.asked = true, s
	return s, true
}

// Digest is the digest of the resources.
func (s Snapshot) Digest() digest.Digest { return s.v.Digest }

// Count is the number of resources.
func (d *Digested) Count() int { return int(d.digest.Count) }

// Indexed reports whether the index is there that Table, Keys and Get need, and otherwise make.
func (d *Digested) Indexed() bool { return d.index.Load() != nil }

// Table returns the digests of the buckets, which must not be changed; false if the state was given up.
func (d *Digested) Table() (table digest.Table, ok bool) {
	index, ok := d.indexed()
	if !ok {
		return nil, false
	}
	return index.table, true
}

// KeyHash is a key of a state, and the hash of what it has.
type KeyHash struct {
	Key      string
	Revision uint64
	Hash     digest.Hash
}

// Keys returns the keys of a bucket from the n-th on, at most so many, and whether there are more;
// false if the state was given up, or has no such bucket.
func (d *Digested) Keys(bucket, n, most int) (keys []KeyHash, more, ok bool) {
	index, ok := d.indexed()
	if !ok || bucket < 0 || bucket+1 >= len(index.first) {
		return nil, false, false
	}
	in := index.entries[index.first[bucket]:index.first[bucket+1]]
	in = in[min(n, len(in)):]
	if more = len(in) > most; more {
		in = in[:most]
	}
	return d.keyHashes(in), more, true
}

func (d *Digested) keyHashes(in []indexed) []KeyHash {
	keys := make([]KeyHash, 0, len(in))
	for _, e := range in {
		keys = append(keys, KeyHash{d.framing.Key(e.segment, e.entry), e.entry.Revision, e.entry.Content})
	}
	return keys
}

// Rendered returns what render makes of the keys of a bucket, and how many they are. It is made once
// for all callers, which must all pass the same function and must not change the text. It returns
// false if the state was given up, or if the bucket has more keys than are kept like this.
func (d *Digested) Rendered(bucket int, render func([]KeyHash) []byte) (text []byte, n int, ok bool) {
	index, ok := d.indexed()
	if !ok || bucket < 0 || bucket+1 >= len(index.first) {
		return nil, 0, false
	}
	in := index.entries[index.first[bucket]:index.first[bucket+1]]
	if len(in) > mostRendered {
		return nil, 0, false
	}
	index.mu.Lock()
	defer index.mu.Unlock()
	if text, ok = index.texts[bucket]; ok {
		return text, len(in), true
	}
	text = slices.Clip(render(d.keyHashes(in)))
	if !index.forgotten {
		if index.texts == nil {
			index.texts = map[int][]byte{}
		}
		index.texts[bucket] = text
		size := int64(len(text)) + textOverhead
		index.textBytes += size
		d.account.Supersede(size)
	}
	return text, len(in), true
}

// Kept returns the answer with a name if it was made already, and is still kept.
func (d *Digested) Kept(name string) (answer Shared, ok bool) {
	index := d.index.Load()
	if index == nil {
		return answer, false
	}
	return index.kept(name)
}

func (i *bucketIndex) kept(name string) (answer Shared, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.answers {
		if a.name == name {
			return a, true
		}
	}
	return answer, false
}

// TakeTurn waits until no answer about the state is being made, so that each is made once for all requests for it. Its
// error is that of the context.
func (d *Digested) TakeTurn(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// EndTurn lets the next one make an answer.
func (d *Digested) EndTurn() { <-d.turn }

// Share returns the answer with a name, which render makes unless it is kept. The caller has the turn. The newest ones
// are kept for as long as the index. ok is false if the state was given up.
func (d *Digested) Share(name string, render func() (Shared, error)) (answer Shared, ok bool, err error) {
	index, ok := d.indexed()
	if !ok {
		return answer, false, nil
	}
	if answer, ok := index.kept(name); ok {
		return answer, true, nil
	}
	if answer, err = render(); err == nil && len(answer.Body) <= mostSharedBytes {
		answer.name = name
		d.account.Supersede(index.keep(answer))
	}
	return answer, true, err
}

// keep keeps an answer, and returns how many bytes that takes more.
func (i *bucketIndex) keep(answer Shared) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.forgotten {
		return 0
	}
	more := answer.bytes()
	if len(i.answers) == mostShared {
		more -= i.answers[0].bytes()
		i.answers = slices.Delete(i.answers, 0, 1)
	}
	i.answers = append(i.answers, answer)
	i.textBytes += more
	return more
}

// Get returns a resource of the state, which holds on to its memory; exists is false if it has none
// with the key, and ok if the state was given up.
func (d *Digested) Get(key string) (r stream.Resource, exists, ok bool) {
	index, ok := d.indexed()
	if !ok {
		return r, false, false
	}
	b := digest.BucketOf(digest.OfKey(key), len(index.first)-1)
	in := index.entries[index.first[b]:index.first[b+1]]
	k := storage.NewKey(key)
	at, _ := slices.BinarySearchFunc(in, k.Hash, func(e indexed, hash uint32) int { return cmp.Compare(e.entry.Hash, hash) })
	for ; at < len(in) && in[at].entry.Hash == k.Hash; at++ {
		if e := in[at]; d.framing.KeyEquals(e.segment, e.entry, k) {
			return d.framing.Event(e.segment, e.entry).Resource, true, true
		}
	}
	return r, false, true
}

// indexed returns the index of the state, which it makes if it has none; false if the state was
// given up. It counts as memory that readers of older versions hold.
func (d *Digested) indexed() (*bucketIndex, bool) {
	v := d.pin.Version()
	if v == nil {
		return nil, false
	}
	if index := d.index.Load(); index != nil {
		return index, true
	}
	index := newBucketIndex(d.framing, v)
	d.account.Supersede(index.bytes())
	if !d.index.CompareAndSwap(nil, index) {
		d.account.Supersede(-index.bytes())
		return d.indexed() // another goroutine has made it meanwhile
	}
	if d.pin.Version() == nil { // it was given up meanwhile
		d.forgetIndex()
		return nil, false
	}
	time.AfterFunc(digestedKept, d.forgetIndex) // also while nothing is written
	if d.only {
		return index, true
	}
	d.among.mu.Lock()
	defer d.among.mu.Unlock()
	with := &d.among.indexed
	if with[0] != nil {
		with[0].forgetIndex()
	}
	with[0], with[1] = with[1], d
	return index, true
}

// newBucketIndex makes the index of a state. Within a bucket the entries are in the order of the
// hashes by which the log finds keys.
func newBucketIndex(f *storage.Format, v *storage.Version) *bucketIndex {
	buckets := digest.Buckets(uint64(v.Count()))
	entries, of := make([]indexed, 0, v.Count()), make([]int32, 0, v.Count())
	first := make([]int, buckets+1)
	v.Each(v.Seq, func(s *storage.Segment, e *storage.Entry) bool {
		b := digest.BucketOf(digest.OfKey(f.Key(s, e)), buckets)
		entries, of = append(entries, indexed{s, e}), append(of, int32(b))
		first[b+1]++
		return true
	})
	for b := range buckets {
		first[b+1] += first[b]
	}
	sorted, next := make([]indexed, len(entries)), slices.Clone(first)
	for i, e := range entries {
		sorted[next[of[i]]] = e
		next[of[i]]++
	}
	for b := range buckets {
		slices.SortStableFunc(sorted[first[b]:first[b+1]], func(x, y indexed) int { return cmp.Compare(x.entry.Hash, y.entry.Hash) })
	}
	table := digest.NewTable(uint64(len(sorted)))
	for b := range table {
		for _, e := range sorted[first[b]:first[b+1]] {
			table[b] = table[b].Add(e.entry.Content)
		}
	}
	return &bucketIndex{entries: sorted, first: first, table: table}
}
