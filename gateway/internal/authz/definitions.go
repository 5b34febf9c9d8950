package authz

import (
	"container/list"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/watchtide/watchtide/internal/view"
)

// definitions makes the definitions of requests, and caches the latest ones that have a filter:
// compiling a filter takes up to some milliseconds, and after an outage many clients come back
// with the same one.
//
// At most half of the processors make definitions, so that the others serve streams. One
// definition is made at a time for each client, so that no client delays the others.
//
// All methods may be called from any goroutine.
type definitions struct {
	processors chan struct{} // static after construction; has an element for each busy processor

	mu      sync.Mutex // guards the following fields
	known   map[string]*list.Element
	newest  *list.List         // of *definition
	clients map[string]*client // whose definition is being made, or waits
}

// client is a client whose definition is being made, or waits.
type client struct {
	turn  chan struct{} // static after construction; has an element while a definition is being made
	calls int           // calls that use this client; guarded by the mutex of definitions
}

// definition is a cached definition.
type definition struct {
	key string
	*view.Definition
}

// definitionsKept is the number of cached definitions. Each takes a few KiB, and at most a few
// hundred.
const definitionsKept = 256

// newDefinitions returns an empty cache.
func newDefinitions() *definitions {
	return &definitions{
		processors: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		known:      map[string]*list.Element{}, newest: list.New(), clients: map[string]*client{},
	}
}

// parse returns the definition of what a client selects of may, the part that it may read; nil:
// the whole watch. It waits for its turn if the definition has to be made.
func (d *definitions) parse(ctx context.Context, may *view.Definition, p view.Params, client string) (*view.Definition, error) {
	if p.Filter == "" && len(p.Fields) <= view.MaxFields {
		return narrow(may, p) // costs no more than a look-up
	}
	key := keyOf(p)
	if may != nil {
		key = may.ID() + key // an ID has a fixed length, and a key begins with a number
	}
	if known := d.find(key); known != nil {
		return known, nil
	}
	c := d.enter(client)
	defer d.leave(client, c)
	for _, turn := range []chan struct{}{c.turn, d.processors} {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if known := d.find(key); known != nil { // made while this one waited
		return known, nil
	}
	made, err := narrow(may, p)
	if err != nil {
		return nil, err
	}
	d.remember(key, made)
	return made, nil
}

// narrow returns the definition of what p selects of may; nil: of the whole watch.
func narrow(may *view.Definition, p view.Params) (*view.Definition, error) {
	if may == nil {
		return view.Parse(p)
	}
	return may.Narrow(p)
}

// enter counts a call in, and leave counts it out.
func (d *definitions) enter(name string) *client {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clients[name] == nil {
		d.clients[name] = &client{turn: make(chan struct{}, 1)}
	}
	d.clients[name].calls++
	return d.clients[name]
}

func (d *definitions) leave(name string, c *client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.calls--; c.calls == 0 {
		delete(d.clients, name)
	}
}

func (d *definitions) find(key string) *view.Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.known[key]
	if !ok {
		return nil
	}
	d.newest.MoveToFront(at)
	return at.Value.(*definition).Definition
}

func (d *definitions) remember(key string, made *view.Definition) {
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

// keyOf returns a text that only equal parameters share. Each part is preceded by its length.
func keyOf(p view.Params) string {
	out := binary.AppendUvarint(nil, uint64(max(0, p.ValueSize)))
	out = binary.AppendUvarint(out, uint64(len(p.Keys)))
	for _, part := range slices.Concat(p.Keys, []string{p.Prefix, p.Labels, p.Filter, p.LabelsAt, p.Order, p.Limit, p.Offset, p.After}, p.Fields) {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
	}
	return string(out)
}
