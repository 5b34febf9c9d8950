package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// verifyWithin is how long a client may take to find out what differs between what it has and
	// what the server has.
	verifyWithin = 20 * time.Second
	// verifySpread is over how long clients that resume at the same time spread their requests.
	verifySpread = 250 * time.Millisecond
	// readAtOnce and urlAtOnce bound a request for resources: their number, and the bytes of their keys.
	readAtOnce, urlAtOnce = 1000, 4 << 10
	// mostElsewhere is how often a request is made again if the server does not have the state, and elsewhereSpread the
	// longest wait before: behind a proxy each request may go to another replica, and the one that has sent the digest has
	// the state.
	mostElsewhere, elsewhereSpread = 8, 50 * time.Millisecond
	// bucketsAtOnce is how many buckets a request for keys names.
	bucketsAtOnce = 100
	// maxTableBytes, maxKeysBytes and maxResourcesBytes bound an answer, the last one with a largest
	// resource. A server ends a page of keys or resources after a MiB, about.
	maxTableBytes, maxKeysBytes, maxResourcesBytes = 64 << 20, 8 << 20, 2<<20 + MaxEventBytes
)

// verifying makes a stream have digests, with which the replica verifies what it has.
func verifying[V any](c *Client, r *Replica[V]) WatchOption {
	return watchOption(func(f *follower) {
		f.verify = func(ctx context.Context, e Event, hand func(Event) error) error {
			if e.Digest != "" && e.Watch == r.watch && !r.matches(e.Digest) {
				untold := func(Event) error { return nil }
				if err := r.repair(ctx, newDifference(c, r.watch, f.view, e.Digest), e, untold); err != nil {
					f.id = replacePlace(f.id, r.watch, placeOf(r.rollBack(), r.watch))
					return err
				}
			}
			return hand(e)
		}
	})
}

// Verifying makes [Client.Watch] verify what it has handed over of each watch, where the server says
// the digest of what it has. What differs is handed over as upserts and deletes, all of it or nothing. So a
// position that cannot be resumed costs what differs, in place of a reset and a snapshot. The key and a hash
// of each resource are kept.
//
// With [From] it has no effect: what the caller has is not known.
func Verifying() WatchOption { return watchOption(func(f *follower) { f.verifying = true }) }

// handed has the keys and hashes of what was handed over of each watch, and the events that are to be handed over once one
// of them has an ID.
type handed struct {
	follower *follower
	of       map[string]*Replica[struct{}]
	next     []Event
	repaired int64 // bytes of the repairs in next
}

// verify verifies what was handed over. It hands over the events up to one with an ID, with the repairs before them, or
// nothing if a digest does not match after all.
func (h *handed) verify(ctx context.Context, e Event, hand func(Event) error) error {
	if err := h.add(ctx, e); err != nil {
		for _, r := range h.of {
			r.rollBack()
		}
		h.next, h.repaired = nil, 0
		return err
	}
	if e.ID == "" {
		return nil
	}
	next := h.next
	h.next, h.repaired = nil, 0
	for _, e := range next {
		if r := h.of[e.Watch]; r != nil {
			r.keep()
		}
	}
	for _, e := range next {
		if err := hand(e); err != nil {
			return err
		}
	}
	return nil
}

// add adds an event to what is handed over next, and the repairs that come before it.
func (h *handed) add(ctx context.Context, e Event) error {
	f := h.follower
	if !slices.Contains(f.watches, e.Watch) { // it was not asked for: nothing of it is kept
		h.next = append(h.next, e)
		return nil
	}
	r := h.of[e.Watch]
	if r == nil {
		r = newReplica(e.Watch, func(Resource) (struct{}, error) { return struct{}{}, nil })
		h.of[e.Watch] = r
	}
	if e.Digest != "" && !r.matches(e.Digest) {
		if err := r.repair(ctx, newDifference(f.client, e.Watch, f.view, e.Digest), e, h.repair); err != nil {
			return err
		}
	}
	h.next = append(h.next, e)
	return r.Apply(e)
}

// repair adds a repair to what is handed over next.
func (h *handed) repair(e Event) error {
	h.repaired += e.cost()
	if most := h.follower.mostBytes(); h.repaired > most {
		return fmt.Errorf("%w: more than %d bytes of it", ErrTooDifferent, most)
	}
	h.next = append(h.next, e)
	return nil
}

// Verified returns when what is shown was last found to be what the server has, by its digest; the
// zero time: it was not yet, or the server has no digests.
func (r *Replica[V]) Verified() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verified
}

// matches reports whether a digest is that of what the replica has, with what is not shown yet.
func (r *Replica[V]) matches(of string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pendingDigest().String() == of
}

// pendingDigest returns the digest of what will be shown next. r.mu is held.
func (r *Replica[V]) pendingDigest() digest {
	d := r.digest
	if r.cleared {
		d = digest{}
	}
	for id := range r.deletes {
		if old, known := r.values[id]; known && !r.cleared {
			d = d.sub(old.hash)
		}
	}
	for id, v := range r.upserts {
		if old, known := r.values[id]; known && !r.cleared {
			d = d.sub(old.hash)
		}
		d = d.add(v.hash)
	}
	return d
}

// pending calls f with the ID and the hash of each resource that will be shown next. r.mu is held.
func (r *Replica[V]) pending(f func(id string, hash uint64)) {
	for id, v := range r.values {
		_, deleted := r.deletes[id]
		if _, replaced := r.upserts[id]; !r.cleared && !deleted && !replaced {
			f(id, v.hash)
		}
	}
	for id, v := range r.upserts {
		f(id, v.hash)
	}
}

// rollBack forgets what is not shown yet, and returns an ID at which what is shown was complete; empty: there is none.
func (r *Replica[V]) rollBack() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.upserts)
	clear(r.deletes)
	r.cleared, r.reached = false, r.revision
	return r.position
}

// keep makes all that has arrived what is held, also in the middle of a snapshot.
func (r *Replica[V]) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.show()
}

// repair makes what will be shown next the state of the difference, which is that at the event, and
// tells what it changes.
func (r *Replica[V]) repair(ctx context.Context, d *difference, at Event, tell func(Event) error) error {
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	err := r.replaceDiffering(ctx, d, at, tell)
	switch {
	case errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTooDifferent):
		return fmt.Errorf("%s: %w", verifyingHeld, err)
	case isGone(err):
		return fmt.Errorf("%w: %v", errStateGone, err)
	case err != nil:
		return fmt.Errorf("%s: %v", verifyingHeld, err) // a refusal of these requests is none of the stream
	}
	return nil
}

const verifyingHeld = "verifying what is held"

// errStateGone means that the replica that was asked does not have the state with the digest that was sent.
var errStateGone = errors.New(verifyingHeld)

// isGone reports whether the server no longer has what was asked for.
func isGone(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status == http.StatusGone
}

func (r *Replica[V]) replaceDiffering(ctx context.Context, d *difference, at Event, tell func(Event) error) error {
	if err := Pause(ctx, rand.N(verifySpread)); err != nil {
		return err
	}
	differing, err := r.differing(ctx, d)
	if err != nil {
		return err
	}
	theirs, err := d.keys(ctx, differing)
	if err != nil {
		return err
	}
	wanted, extra := r.dropExtra(theirs, differing, d.buckets)
	if err := d.limit(wanted); err != nil {
		return err
	}
	for _, id := range extra {
		gone := resourceOf(id)
		gone.Revision = at.Revision
		if err := tell(repairing(Delete, r.watch, gone)); err != nil {
			return err
		}
	}
	err = d.read(ctx, wanted, func(found Resource) error {
		e := repairing(Upsert, r.watch, found)
		if err := tell(e); err != nil {
			return err
		}
		return r.Apply(e)
	})
	if err == nil && !r.matches(at.Digest) {
		err = errors.New("what was read has another digest")
	}
	return err
}

// repairing returns the event for a resource that differed.
func repairing(t EventType, watch string, r Resource) Event {
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	_ = out.Encode(struct { // the value was read as JSON: there is no error
		Type        EventType       `json:"type"`
		Watch       string          `json:"watch"`
		Key         string          `json:"key"`
		KeyEncoding string          `json:"key_encoding,omitempty"`
		Revision    string          `json:"revision"`
		Encoding    string          `json:"encoding,omitempty"`
		Value       json.RawMessage `json:"value,omitempty"`
	}{t, watch, r.Key, r.KeyEncoding, r.Revision, r.Encoding, r.Value})
	return Event{Type: t, Watch: watch, Resource: r, Data: bytes.TrimSuffix(line.Bytes(), []byte("\n"))}
}

// differing returns the buckets in which the replica has something else.
func (r *Replica[V]) differing(ctx context.Context, d *difference) (map[int]bool, error) {
	theirs, err := d.table(ctx)
	if err != nil {
		return nil, err
	}
	mine := make([]digest, d.buckets)
	r.mu.Lock()
	r.pending(func(id string, hash uint64) {
		b := bucketOf(id, d.buckets)
		mine[b] = mine[b].add(hash)
	})
	r.mu.Unlock()
	differing := map[int]bool{}
	for b := range mine {
		at := theirs[b*bucketSize:]
		if uint32(mine[b].count) != binary.LittleEndian.Uint32(at) || mine[b].lo != binary.LittleEndian.Uint64(at[4:]) {
			differing[b] = true
		}
	}
	return differing, nil
}

// dropExtra deletes what the server does not have, and returns what it has that the replica lacks, and the
// IDs of what was deleted.
func (r *Replica[V]) dropExtra(theirs map[string]keyHash, differing map[int]bool, buckets int) (wanted []keyHash, extra []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending(func(id string, hash uint64) {
		if !differing[bucketOf(id, buckets)] {
			return
		}
		k, has := theirs[id]
		switch {
		case !has:
			extra = append(extra, id)
		case k.hash == hash:
			delete(theirs, id)
		}
	})
	for _, id := range extra {
		delete(r.upserts, id)
		r.deletes[id] = struct{}{}
	}
	for _, k := range theirs {
		wanted = append(wanted, k)
	}
	slices.SortFunc(extra, CompareIDs)
	return wanted, extra
}

// bucketsOf returns how many buckets a state of so many resources has: one for 16 of them, and 16,384 at most.
func bucketsOf(count int) int { return min(max(1, count/16+min(1, count%16)), 1<<14) }

// bucketOf returns in which of some buckets the resource with an ID is.
func bucketOf(id string, buckets int) int {
	return int(uint64(resourceOf(id).keyHash()) * uint64(buckets) >> 32)
}

// resourceOf returns a resource with an ID.
func resourceOf(id string) Resource {
	if key, is := strings.CutPrefix(id, "base64:\x00"); is {
		return Resource{Key: key, KeyEncoding: "base64"}
	}
	return Resource{Key: id}
}

// bucketSize is the bytes of a bucket in a table: the low 32 bits of its count, and the low 64 bits of
// its sum, both little-endian.
const bucketSize = 12

// difference asks a server for the state with a digest.
type difference struct {
	client  *Client
	watch   string
	view    View
	digest  string
	count   int // of the resources, as the digest says
	buckets int
	refused error // the newest answer that there was none for now; nil: each request was answered
}

// ErrUnavailable means that the server refused to answer for now, or that the network failed. That says nothing about what
// was asked.
var ErrUnavailable = errors.New("no answer for now")

// unavailable reports whether an error is one of the server or of the network that may soon be over.
func unavailable(err error) bool {
	var p *Problem
	if errors.As(err, &p) {
		return p.Status == http.StatusTooManyRequests || p.Status >= http.StatusBadGateway
	}
	var request *url.Error
	var cut cutError
	return !errors.Is(err, ErrInvalid) && (errors.As(err, &request) || errors.As(err, &cut))
}

func newDifference(c *Client, watch string, v View, digest string) *difference {
	text, _, _ := strings.Cut(digest, "-")
	count, _ := strconv.Atoi(text) // 0 if it is none: then it has no bucket that could differ
	count = max(count, 0)
	return &difference{client: c, watch: watch, view: v, digest: digest, count: count, buckets: bucketsOf(count)}
}

// keyHash is a key as it is sent, and the hash and the revision of its resource.
type keyHash struct {
	key, encoding, revision string
	hash                    uint64
}

// get reads an answer of at most so many bytes. If the server does not have the state, it asks some more times, since another
// replica may answer. As long as there is no answer for now, it asks again, after the time that the
// server named and a random one, until the deadline of ctx. Then the error is ErrUnavailable.
func (d *difference) get(ctx context.Context, into any, most int64, query url.Values, part ...string) error {
	d.view.AddTo(query, "")
	path := append([]string{"v1", "watches", d.watch, "digests", d.digest}, part...)
	address := d.client.url(query, path...)
	for failures, elsewhere := 0, 0; ; {
		err := d.client.get(ctx, into, most, address)
		switch {
		case err == nil:
			return nil
		case isGone(err) && elsewhere < mostElsewhere && Pause(ctx, rand.N(elsewhereSpread)) == nil:
			elsewhere++
			continue
		case d.refused != nil && (ctx.Err() != nil || isGone(err)): // the wait took too long
			return d.refused
		case ctx.Err() != nil || !unavailable(err):
			return err
		}
		d.refused = fmt.Errorf("%w: %w", ErrUnavailable, err)
		failures++
		wait := Backoff(End{}, failures, rand.Float64())
		var p *Problem
		if errors.As(err, &p) {
			wait += p.RetryAfter
		}
		if until, has := ctx.Deadline(); has && time.Until(until) < wait {
			return d.refused
		}
		if Pause(ctx, wait) != nil {
			return d.refused
		}
	}
}

// within returns a context that ends when finding out what differs takes too long.
func (d *difference) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, verifyWithin+time.Duration(d.count)*verifyEach)
}

// table returns the bytes of the table of the buckets.
func (d *difference) table(ctx context.Context) ([]byte, error) {
	var answer struct {
		Buckets int    `json:"buckets"`
		Table   []byte `json:"table"`
	}
	most := min(maxTableBytes, int64(d.buckets)*2*bucketSize+4<<10) // in base64
	if err := d.get(ctx, &answer, most, url.Values{}); err != nil {
		return nil, err
	}
	if answer.Buckets != d.buckets || len(answer.Table) != d.buckets*bucketSize {
		return nil, fmt.Errorf("%w: a table of %d bytes for %d buckets, want %d buckets for %d resources", ErrInvalid,
			len(answer.Table), answer.Buckets, d.buckets, d.count)
	}
	return answer.Table, nil
}

// keys returns the keys of some buckets, by the IDs of their resources.
func (d *difference) keys(ctx context.Context, buckets map[int]bool) (map[string]keyHash, error) {
	all := map[string]keyHash{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(buckets)), bucketsAtOnce) {
		query := url.Values{}
		for _, b := range some {
			query.Add("bucket", strconv.Itoa(b))
		}
		for token := "first"; token != ""; query.Set("page_token", token) {
			var answer struct {
				Keys []struct {
					Key      string `json:"key"`
					Encoding string `json:"key_encoding"`
					Revision string `json:"revision"`
					Hash     string `json:"hash"`
				} `json:"keys"`
				Next string `json:"next_page_token"`
			}
			if err := d.get(ctx, &answer, maxKeysBytes, query, "keys"); err != nil {
				return nil, err
			}
			before := len(all)
			for _, k := range answer.Keys {
				hash, err := strconv.ParseUint(k.Hash, 16, 64)
				if err != nil {
					return nil, fmt.Errorf("%w: the hash of a key is %.40q", ErrInvalid, k.Hash)
				}
				all[Resource{Key: k.Key, KeyEncoding: k.Encoding}.ID()] = keyHash{k.Key, k.Encoding, k.Revision, hash}
			}
			token = answer.Next
			switch {
			case token != "" && len(all) == before:
				return nil, fmt.Errorf("%w: a page without new keys, and more", ErrInvalid)
			case len(all) > d.count:
				return nil, fmt.Errorf("%w: the keys of more than %d resources", ErrInvalid, d.count)
			}
		}
	}
	return all, nil
}

// read calls f with each of the resources. They are asked for by their keys, as many at once as fit
// into a URL; those whose keys are in base64 by themselves.
func (d *difference) read(ctx context.Context, wanted []keyHash, f func(Resource) error) error {
	slices.SortFunc(wanted, func(a, b keyHash) int { return cmp.Or(cmp.Compare(a.encoding, b.encoding), cmp.Compare(a.key, b.key)) })
	for len(wanted) > 0 {
		query, n := url.Values{}, 0
		for size := 0; n < min(len(wanted), readAtOnce) && wanted[n].encoding == wanted[0].encoding; n++ {
			escaped := url.QueryEscape(wanted[n].key)
			if size += len(escaped) + len("key=&"); size > urlAtOnce && n > 0 {
				break
			}
			query.Add("key", wanted[n].key)
		}
		if wanted[0].encoding != "" {
			query.Set("key_encoding", wanted[0].encoding)
		}
		var answer struct {
			Resources []Resource `json:"resources"`
			Read      int        `json:"read"`
		}
		if err := d.get(ctx, &answer, maxResourcesBytes, query, "resources"); err != nil {
			return err
		}
		if answer.Read < 1 || answer.Read > n || len(answer.Resources) > answer.Read {
			return fmt.Errorf("%w: %d resources of %d of %d keys were read", ErrInvalid, len(answer.Resources), answer.Read, n)
		}
		for _, r := range answer.Resources {
			_, asked := slices.BinarySearchFunc(wanted[:answer.Read], r.Key, func(k keyHash, key string) int { return cmp.Compare(k.key, key) })
			if !asked || r.KeyEncoding != wanted[0].encoding {
				return fmt.Errorf("%w: a resource that was not asked for, %.40q", ErrInvalid, r.Key)
			}
			if err := f(r); err != nil {
				return err
			}
		}
		wanted = wanted[answer.Read:]
	}
	return nil
}

// Verification is what Verify found out.
type Verification struct {
	Watch    string `json:"watch"`
	Revision string `json:"revision"`
	Count    int    `json:"count"`
	// Digest is that of what was sent.
	Digest string `json:"digest"`
	// Differing has the keys that differ, in order; those in base64 have "base64:" before them.
	Differing []string `json:"differing"`
}

// ErrNoDigest means that a server is older than digests.
var ErrNoDigest = errors.New("the server knows no digests")

// Verify reads a view of a watch, and compares the digest of what it was sent with that of what the
// server has. An error means that they are not compared; they are equal if Differing is empty.
func (c *Client) Verify(ctx context.Context, watch string, v View) (Verification, error) {
	r := newReplica(watch, asItIs)
	theirs := ""
	said := watchOption(func(f *follower) {
		f.verify = func(_ context.Context, e Event, hand func(Event) error) error {
			theirs = cmp.Or(e.Digest, theirs)
			return hand(e)
		}
	})
	for e, err := range c.Watch(ctx, watch, v, UntilEndOfSnapshot(), said) {
		if err == nil {
			err = r.Apply(e)
		}
		if err == nil && e.State == Offline {
			err = e.Err
		}
		if err != nil {
			return Verification{}, err
		}
	}
	if theirs == "" {
		return Verification{}, ErrNoDigest
	}
	found := Verification{Watch: watch, Revision: r.Revision(), Count: r.Len(), Digest: r.digest.String()}
	if found.Digest == theirs {
		return found, nil
	}
	differing, err := r.differingFrom(ctx, newDifference(c, watch, v, theirs))
	found.Differing = differing
	return found, err
}

// differingFrom returns the keys that differ from those of a state with another digest. Hashes of a bucket may have
// the same lower half of their sum by accident: if no bucket differs, the keys of all are read.
func (r *Replica[V]) differingFrom(ctx context.Context, d *difference) (shown []string, err error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	for _, all := range []bool{false, true} {
		buckets, err := r.toRead(ctx, d, all)
		if err != nil {
			return nil, err
		}
		keys, err := d.keys(ctx, buckets)
		if err != nil {
			return nil, err
		}
		wanted, extra := r.dropExtra(keys, buckets, d.buckets)
		for _, k := range wanted {
			shown = append(shown, Resource{Key: k.key, KeyEncoding: k.encoding}.shownID())
		}
		for _, id := range extra {
			shown = append(shown, strings.Replace(id, ":\x00", ":", 1))
		}
		if len(shown) > 0 {
			slices.Sort(shown)
			return shown, nil
		}
	}
	return nil, fmt.Errorf("%w: the digest of watch %s is %s, what was sent has %s, and no key differs", ErrInvalid, r.watch, d.digest, r.digestShown())
}

// shownID returns the ID as a person reads it.
func (r Resource) shownID() string { return strings.Replace(r.ID(), ":\x00", ":", 1) }

// Compare follows a view of a watch at two servers until they have the same, or ctx ends. It returns
// the keys that differ then, and what the first of them has.
func (c *Client) Compare(ctx context.Context, other *Client, watch string, v View) (Verification, error) {
	a, b := c.Replica(ctx, watch, v), other.Replica(ctx, watch, v)
	defer a.Close()
	defer b.Close()
	for {
		changedA, changedB := a.Changed(), b.Changed()
		found := Verification{Watch: watch, Revision: a.Revision(), Count: a.Len(), Digest: a.digestShown()}
		if a.Revision() != "" && b.Revision() != "" && found.Digest == b.digestShown() {
			return found, nil
		}
		select {
		case <-changedA:
		case <-changedB:
		case <-a.done:
			return found, cmp.Or(a.Err(), context.Cause(ctx))
		case <-b.done:
			return found, cmp.Or(b.Err(), context.Cause(ctx))
		case <-ctx.Done():
			if a.Revision() == "" || b.Revision() == "" {
				return found, context.Cause(ctx)
			}
			found.Differing = differingKeys(a, b)
			return found, nil
		}
	}
}

func (r *Replica[V]) digestShown() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.digest.String()
}

// hashes returns the hashes of what is shown.
func (r *Replica[V]) hashes() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]uint64, len(r.values))
	for id, v := range r.values {
		all[id] = v.hash
	}
	return all
}

func differingKeys[V any](a, b *Replica[V]) (keys []string) {
	x, y := a.hashes(), b.hashes()
	for id, hash := range x {
		if other, has := y[id]; !has || other != hash {
			keys = append(keys, strings.Replace(id, ":\x00", ":", 1))
		}
		delete(y, id)
	}
	for id := range y {
		keys = append(keys, strings.Replace(id, ":\x00", ":", 1))
	}
	slices.Sort(keys)
	return keys
}
