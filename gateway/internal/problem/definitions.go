package problem

import (
	"container/list"
	"context"
	"encoding/binary"
	"runtime"
	"sync"

	"github.com/watchtide/watchtide/stream/view"
)

// Definitions makes the definitions that requests ask for, and remembers the last ones:
// to compile a filter takes up to some milliseconds, and after an outage many clients
// come back with the same one.
//
// All methods may be called from any goroutine.
type Definitions struct {
	turns chan struct{} // static after construction; holds an element for each that is being made

	mu     sync.Mutex // guards the following fields
	known  map[string]*list.Element
	newest *list.List // of *definition
}

// definition is a definition that is remembered.
type definition struct {
	key string
	*view.Definition
}

// definitionsKept is how many definitions are remembered. Each takes a few KiB, and at
// most some hundred.
const definitionsKept = 256

// NewDefinitions returns a table that remembers nothing yet.
func NewDefinitions() *Definitions {
	atOnce := max(1, runtime.GOMAXPROCS(0)/2) // the other processors are for streams
	return &Definitions{turns: make(chan struct{}, atOnce), known: map[string]*list.Element{}, newest: list.New()}
}

// parse is view.Parse. It waits for its turn if it has to make the definition.
func (d *Definitions) parse(ctx context.Context, p view.Params) (*view.Definition, error) {
	key := keyOf(p)
	if known := d.find(key); known != nil {
		return known, nil
	}
	select {
	case d.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-d.turns }()
	if known := d.find(key); known != nil { // made while this one waited
		return known, nil
	}
	made, err := view.Parse(p)
	if err != nil {
		return nil, err
	}
	d.remember(key, made)
	return made, nil
}

func (d *Definitions) find(key string) *view.Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.known[key]
	if !ok {
		return nil
	}
	d.newest.MoveToFront(at)
	return at.Value.(*definition).Definition
}

func (d *Definitions) remember(key string, made *view.Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.known[key]; ok {
		return
	}
	d.known[key] = d.newest.PushFront(&definition{key, made})
	if d.newest.Len() > definitionsKept {
		oldest := d.newest.Remove(d.newest.Back()).(*definition)
		delete(d.known, oldest.key)
	}
}

// keyOf returns the same text for equal parameters only: each part with its length
// before it.
func keyOf(p view.Params) string {
	out := binary.AppendUvarint(nil, uint64(max(0, p.ValueSize)))
	for _, part := range append([]string{p.Prefix, p.Labels, p.Filter, p.LabelsAt}, p.Fields...) {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
	}
	return string(out)
}
