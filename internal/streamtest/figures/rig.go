package figures

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/watchtide/watchtide/stream"
)

// Rig is one upstream, empty at first, and two ways to read it.
type Rig struct {
	// Resources is how many the collection has; 100,000 by default.
	Resources int
	// Writes is how many changes are made as fast as the upstream accepts them;
	// 20,000 by default.
	Writes int

	// Source follows the collection.
	Source stream.Source
	// Load writes the resources 0 … n-1, in any order and as fast as it can. nil:
	// Put does, many at a time.
	Load func(ctx context.Context, n int, value []byte) error
	// Put writes one resource and returns when the upstream has acknowledged
	// it. It is called from several goroutines.
	Put func(ctx context.Context, i int, value []byte) error
	// Raw reads the collection with the client library alone: the whole of it
	// into a map, then primed is called, then changed with the bytes that hold
	// the value of each change, until ctx ends.
	Raw func(ctx context.Context, primed func(), changed func(value []byte)) error
}

// load fills the collection.
func (r *Rig) load(ctx context.Context) error {
	value := stamped(0)
	if r.Load != nil {
		return r.Load(ctx, r.Resources, value)
	}
	return Parallel(ctx, r.Resources, func(ctx context.Context, i int) error { return r.Put(ctx, i, value) })
}

// valueBytes is the size of each value.
const valueBytes = 300

// A name that occurs in nothing that is wrapped around a value.
const (
	stampName  = "stampnumber"
	stampField = `{"` + stampName + `":`
)

// stamped returns a value of valueBytes that begins with a number.
func stamped(n int64) []byte {
	v := make([]byte, 0, valueBytes)
	v = append(strconv.AppendInt(append(v, stampField...), n, 10), `,"fill":"`...)
	v = append(v, bytes.Repeat([]byte("x"), valueBytes-len(v)-len(`"}`))...)
	return append(v, `"}`...)
}

// stampOf finds the number in a wrapped value, which may be in a JSON string.
func stampOf(value []byte) (int64, error) {
	_, rest, _ := bytes.Cut(value, []byte(stampName))
	rest = bytes.TrimLeft(rest, `\": `)
	end := bytes.IndexByte(rest, ',')
	if end < 0 {
		return 0, fmt.Errorf("a value without its stamp: %.80q", value)
	}
	return strconv.ParseInt(string(rest[:end]), 10, 64)
}
