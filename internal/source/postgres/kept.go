package postgres

import (
	"bytes"
	"errors"
	"hash/maphash"
)

// row is what a source keeps of a row that was sent: its value, if an update may leave out a part of it, and
// otherwise a hash to compare it with.
type row struct {
	value    []byte // nil: only the hash is kept
	hash     [2]uint64
	revision uint64
	relation uint32 // the partition that has it, or the table; 0: it is not known
}

// rowCost is what a row takes in addition to its key and its value.
const rowCost = 136

func (r *row) cost(key string) int64 { return int64(rowCost + len(key) + len(r.value)) }

// smallValue is the length below which a value is taken for one of a row that the server stores in one piece.
// It moves parts of a row out of line from about 2,000 bytes on, and a few types have a text that is shorter than
// what is stored.
const smallValue = 1024

// errLarge means that a row has a part that is stored out of line, although it was not taken for such a one.
var errLarge = errors.New("the table has small rows with parts that are stored out of line, and is read again")

// keeper decides what is kept of rows.
type keeper struct {
	seeds [2]maphash.Seed
	all   bool // values are
}

func newKeeper() keeper {
	return keeper{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// keep returns what is kept of a row. small says that no part of it is stored out of line.
func (k *keeper) keep(value []byte, revision uint64, relation uint32, small bool) row {
	r := row{revision: revision, relation: relation}
	if !k.all && (small || len(value) < smallValue) {
		r.hash = k.hash(value)
	} else {
		r.value = value
	}
	return r
}

func (k *keeper) hash(value []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(k.seeds[0], value), maphash.Bytes(k.seeds[1], value)}
}

// has reports whether a row has a value. With a hash, two values are taken for the same one by mistake with a
// probability of 2^-128.
func (k *keeper) has(r row, value []byte) bool {
	if r.value != nil {
		return bytes.Equal(r.value, value)
	}
	return r.hash == k.hash(value)
}
