package etcd

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/watchtide/watchtide/stream"
)

// epochs names revision orders. The name is derived from data that every replica
// of the gateway has, the cluster's id, the prefix and the kind of values, while nothing contradicts
// it.
//
// Owned by Watch.
type epochs struct {
	prefix string
	// suffix of a cluster whose store was replaced under the same id.
	suffix map[uint64]string
}

func newEpochs(prefix string, values stream.Values) epochs {
	if values != stream.AnyValues {
		prefix += "\x00" + string(values) // the same revision has another value
	}
	return epochs{prefix: prefix, suffix: map[uint64]string{}}
}

// of returns the name of the cluster's present revision order. It is short, so that
// it stays readable in the positions of views too, which append a suffix to it.
func (e *epochs) of(cluster uint64) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(e.prefix), cluster))
	return stream.CanonicalEpoch(hex.EncodeToString(sum[:4]) + e.suffix[cluster])
}

// replace gives the cluster a name that it never had. The name is random, since
// etcd provides no data from which two replicas could derive the same name for
// the new store and no other.
func (e *epochs) replace(cluster uint64) {
	e.suffix[cluster] = fmt.Sprintf("~%06x", rand.IntN(1<<24))
}
