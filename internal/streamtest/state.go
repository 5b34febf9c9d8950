package streamtest

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/digest"
	"github.com/watchtide/watchtide/stream"
)

// Version is a value of a key at a revision.
type Version struct {
	Revision uint64
	// Value is the JSON text; of a long one the beginning, the length and a
	// hash, so that large values can be compared a million times.
	Value string
}

const longValue = 64

var valueSeed = maphash.MakeSeed()

// ValueText returns the text that a Version holds for a value.
func ValueText[T string | []byte](value T) string {
	if len(value) <= longValue {
		return string(value)
	}
	var h maphash.Hash
	h.SetSeed(valueSeed)
	_, _ = h.Write([]byte(value))
	return fmt.Sprintf("%s… (%d bytes, %x)", string(value[:longValue]), len(value), h.Sum64())
}

// digest returns the digest of a state; false: it has long values, of which only a hash is known.
func (s State) digest() (string, bool) {
	var d digest.Digest
	for key, v := range s {
		if len(v.Value) > longValue {
			return "", false
		}
		d = d.Add(v.hash(key))
	}
	return d.String(), true
}

// hash returns the hash of a version; that of a long value is wrong.
func (v Version) hash(key string) digest.Hash { return digest.Of(key, []byte(v.Value), "") }

// State is a collection, by key.
type State map[string]Version

// Apply acts like a four-line client: reset clears, upsert puts, delete
// removes, everything else leaves the state as it is.
func (s State) Apply(e stream.Event) { s.apply(&e, versionOf) }

func (s State) apply(e *stream.Event, version func(stream.Resource) Version) {
	switch e.Type {
	case stream.Reset:
		clear(s)
	case stream.Upsert:
		s[e.Resource.Key] = version(e.Resource)
	case stream.Delete:
		delete(s, e.Resource.Key)
	}
}

// Clone returns a copy; of nil, an empty one.
func (s State) Clone() State {
	out := make(State, len(s))
	maps.Copy(out, s)
	return out
}

// Diff describes how s differs from want, with at most five keys; empty if it does
// not.
func (s State) Diff(want State) string {
	if s.Equal(want) {
		return "" // nearly always, and much faster
	}
	var out []string
	for _, key := range sortedKeys(s, want) {
		got, have := s[key]
		w, wanted := want[key]
		switch {
		case !wanted:
			out = append(out, fmt.Sprintf("%q is extra (revision %d)", key, got.Revision))
		case !have:
			out = append(out, fmt.Sprintf("%q is missing (revision %d)", key, w.Revision))
		case got != w:
			out = append(out, fmt.Sprintf("%q is %s of revision %d, want %s of revision %d",
				key, got.Value, got.Revision, w.Value, w.Revision))
		}
	}
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more", len(out)-5))
	}
	return strings.Join(out, "; ")
}

// Equal is Diff without a description.
func (s State) Equal(want State) bool { return maps.Equal(s, want) }

func sortedKeys(states ...State) []string {
	var keys []string
	for _, s := range states {
		keys = slices.AppendSeq(keys, maps.Keys(s))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func versionOf(r stream.Resource) Version {
	return Version{Revision: r.Revision, Value: ValueText(r.Value)}
}
