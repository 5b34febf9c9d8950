package consul

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// epochs names the revision orders. Consul's resources have no name for theirs:
// nothing in them shows that the server was restored or replaced. So a name
// consists of two parts.
//
// The first identifies the cluster and the collection: it holds the cluster's id
// where Consul reports it (the trust domain of its certificate authority), else
// the address. All replicas with the same configuration agree on it.
//
// The second is empty until versions contradict those that were seen before.
// Then it is derived from the previous name and from the content of the
// collection at that time: replicas that see the same content agree on it. The
// others have names of their own, and clients that move between them get a
// reset. A process that begins with a journal finds the second part in the epoch
// of the watch.
//
// Owned by Watch.
type epochs struct {
	// Static after construction.
	collection []string
	address    string

	cluster string // its id; empty: not known
	broken  string // the second part; empty while nothing was contradicted
}

func newEpochs(c *Config) epochs {
	if c.collection() != Resource {
		e := epochs{
			collection: []string{c.Collection, c.Service, c.Partition, c.Namespace, c.Prefix, string(c.Values), c.Datacenter, c.FilterExpression},
			address:    c.HTTPAddress,
		}
		if c.Entries {
			e.collection = append(e.collection, "entries")
		}
		return e
	}
	return epochs{
		collection: []string{c.Type, c.Partition, c.Namespace, c.NamePrefix},
		address:    c.Address,
	}
}

// name returns the name of the order that continues.
func (e *epochs) name() string {
	if e.broken == "" {
		return e.base()
	}
	return e.base() + "." + e.broken
}

// base returns the first part.
func (e *epochs) base() string {
	of := "cluster " + e.cluster
	if e.cluster == "" {
		of = "address " + e.address
	}
	return hash(slices.Concat(e.collection, []string{of, ""})...)
}

// enter records which cluster answers; "": unknown. It reports whether it is
// another cluster than before. at is the epoch that the watch has: its second
// part counts if it is of this cluster and nothing was contradicted since.
func (e *epochs) enter(cluster, at string) (other bool) {
	if cluster != "" && cluster != e.cluster {
		other = e.cluster != ""
		e.cluster, e.broken = cluster, ""
	}
	if base, broken, _ := strings.Cut(strings.TrimPrefix(at, stream.UnnumberedEpoch), "."); e.broken == "" && base == e.base() {
		e.broken = broken
	}
	return other
}

// renew gives the order another name, derived from the current content of the
// collection. All empty collections look alike, so an empty one gets a random
// name.
func (e *epochs) renew(objects map[string]object) {
	parts := []string{e.broken}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		parts = append(parts, fmt.Sprint(key, " ", objects[key].version, " ", objects[key].uid))
	}
	if len(objects) == 0 {
		parts = append(parts, rand.Text())
	}
	e.broken = hash(parts...)[:brokenLength]
}

// brokenLength is the length of the second part: both, with the separator and the
// prefix of an epoch whose deletes have no revisions, have the length of the longest
// epoch of a position.
const brokenLength = 10

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}
