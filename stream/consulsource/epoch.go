package consulsource

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// epochs names the revision orders. Consul's resources have no name for theirs:
// nothing in them says that the server was restored or replaced. So a name is
// made of two parts.
//
// The first says which collection of which cluster it is: the cluster's id where
// Consul tells it (the trust domain of its certificate authority), else the
// address. All replicas that are configured alike agree on it.
//
// The second is empty until versions are seen to contradict those that were seen
// before. Then it is made of the name before and of what the collection was when
// that was seen: replicas that see the same agree on it; those that do not, have
// names of their own, and clients that move between them get a reset.
//
// Owned by Watch.
type epochs struct {
	// Static after construction.
	collection []string
	address    string

	cluster string // its id; empty: not known
	broken  string // the second part; empty as long as nothing was contradicted
}

func newEpochs(c *Config) epochs {
	return epochs{
		collection: []string{c.Type, c.Partition, c.Namespace, c.NamePrefix},
		address:    c.Address,
	}
}

// name returns the name of the order that goes on.
func (e *epochs) name() string {
	of := "cluster " + e.cluster
	if e.cluster == "" {
		of = "address " + e.address
	}
	return hash(slices.Concat(e.collection, []string{of, e.broken})...)
}

// enter notes which cluster answers; "": it does not say. It returns whether that
// is another one than before.
func (e *epochs) enter(cluster string) (other bool) {
	if cluster == "" || cluster == e.cluster {
		return false
	}
	other = e.cluster != ""
	e.cluster, e.broken = cluster, ""
	return other
}

// renew gives the order another name, made of what the collection is now. An
// empty one is like any other empty one, so that chance has to help.
func (e *epochs) renew(objects map[string]object) {
	parts := []string{e.broken}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		parts = append(parts, fmt.Sprint(key, " ", objects[key].version, " ", objects[key].uid))
	}
	if len(objects) == 0 {
		parts = append(parts, rand.Text())
	}
	e.broken = hash(parts...)
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}
