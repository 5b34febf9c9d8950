package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strconv"

	"github.com/watchtide/watchtide/client"
)

// Known is what is known of the followed watches: which version of each resource. It holds
// no values, so that its size depends on the number of resources only.
//
// Owned by one goroutine.
type Known struct {
	position string // to continue from; empty: there is none
	watches  map[string]*watch
}

// watch is what is known of one watch.
type watch struct {
	complete bool // the state that changes are told from is complete
	versions map[name]version
}

// name identifies a resource in its watch.
type name struct{ key, encoding string }

func nameOf(r client.Resource) name { return name{r.Key, r.KeyEncoding} }

// version tells the values of a resource apart.
type version struct {
	revision uint64
	hash     [hashBytes]byte // zero: a change is pending
	seen     uint32          // the snapshot that had it last, counted from 1
}

func (v version) pending() bool { return v.hash == [hashBytes]byte{} }

// hashBytes is how much of a SHA-256 is kept: enough to never be the same by accident.
const hashBytes = 16

func versionOf(r client.Resource) (version, error) {
	revision, err := strconv.ParseUint(r.Revision, 10, 64)
	if err != nil {
		return version{}, fmt.Errorf("the revision %q of %q is not a number", r.Revision, r.Key)
	}
	h := sha256.New()
	h.Write([]byte(r.Encoding + ":"))
	h.Write(r.Value)
	v := version{revision: revision}
	copy(v.hash[:], h.Sum(nil))
	return v, nil
}

// NewKnown returns what is known of watches at the beginning. complete: that is all there
// is, so that each resource of the first snapshot is a change. Otherwise the first snapshot is the
// state that changes are told from.
func NewKnown(watches []string, complete bool) *Known {
	k := &Known{watches: map[string]*watch{}}
	for _, w := range watches {
		k.watches[w] = &watch{complete: complete, versions: map[name]version{}}
	}
	return k
}

// Position returns the position to continue from; empty: there is none.
func (k *Known) Position() string { return k.position }

// Record is one step of what becomes known. Exactly one of its kinds is set.
type Record struct {
	// Watch is the name of the watch; empty for a position.
	Watch string `json:"watch,omitempty"`
	// Complete means that the state of the watch that changes are told from is complete.
	Complete bool `json:"complete,omitempty"`

	// Key and KeyEncoding are those of a resource.
	Key         *string `json:"key,omitempty"`
	KeyEncoding string  `json:"key_encoding,omitempty"`
	// Pending means that a change of the resource is about to be handled, so that it is not known
	// which value the handler has seen last.
	Pending bool `json:"pending,omitempty"`
	// Revision and Hash are those of its value; without Hash, unless it is pending, it is gone.
	Revision uint64 `json:"revision,omitempty"`
	Hash     string `json:"hash,omitempty"`

	// Position replaces the position; an empty one forgets it.
	Position *string `json:"position,omitempty"`
}

func putRecord(of string, n name, v version) Record {
	if v.pending() {
		return Record{Watch: of, Key: &n.key, KeyEncoding: n.encoding, Pending: true}
	}
	return Record{Watch: of, Key: &n.key, KeyEncoding: n.encoding, Revision: v.revision, Hash: hex.EncodeToString(v.hash[:])}
}

func goneRecord(of string, n name) Record {
	return Record{Watch: of, Key: &n.key, KeyEncoding: n.encoding}
}

// Apply adds a record that an earlier process has written.
func (k *Known) Apply(r Record) error {
	if r.Position != nil {
		k.position = *r.Position
		return nil
	}
	w := k.watches[r.Watch]
	switch {
	case w == nil:
		return fmt.Errorf("the watch %q is not followed", r.Watch)
	case r.Complete:
		w.complete = true
	case r.Key == nil:
		return fmt.Errorf("a record of the watch %q without a key", r.Watch)
	case r.Pending:
		w.versions[name{*r.Key, r.KeyEncoding}] = version{}
	case r.Hash == "":
		delete(w.versions, name{*r.Key, r.KeyEncoding})
	default:
		hash, err := hex.DecodeString(r.Hash)
		if err != nil || len(hash) != hashBytes {
			return fmt.Errorf("the hash %q is not one", r.Hash)
		}
		w.versions[name{*r.Key, r.KeyEncoding}] = version{revision: r.Revision, hash: [hashBytes]byte(hash)}
	}
	return nil
}

// Size returns how many records Records returns.
func (k *Known) Size() int {
	size := 1
	for _, w := range k.watches {
		size += len(w.versions)
		if w.complete {
			size++
		}
	}
	return size
}

// Records returns the records that lead to what is known.
func (k *Known) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for of, w := range k.watches {
			for n, v := range w.versions {
				if !yield(putRecord(of, n, v)) {
					return
				}
			}
			if w.complete && !yield(Record{Watch: of, Complete: true}) {
				return
			}
		}
		yield(Record{Position: &k.position})
	}
}
