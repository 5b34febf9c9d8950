package store

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
)

const (
	// DefaultMaxValueBytes is the default limit on the size of a value.
	DefaultMaxValueBytes = 1 << 20
	// DefaultMaxBytes is the default limit on the size of all keys and values
	// together.
	DefaultMaxBytes = 256 << 20
	// MaxKeyBytes is the size of the longest key: it must fit into a URL.
	MaxKeyBytes = 4 << 10
)

// unusedWatchBytes is about what the smallest watch takes. It is counted for watches that
// nobody uses and that have resources: clients may have any number of these made.
const unusedWatchBytes = 10 << 10

// Config bounds a Store. The zero value of a field is its default.
type Config struct {
	// MaxValueBytes is the size of the largest value accepted, as written.
	MaxValueBytes int
	// MaxBytes is the maximum size of all live keys and values, in all watches
	// together, and of 10 KiB for each watch that was released and has resources. The logs take about twice that memory, and deletes are remembered
	// for a while.
	MaxBytes int64
}

// Store is a writable collection of resources in memory, by watch. Any goroutine
// may call its methods.
type Store struct {
	pb.UnimplementedWatchServiceServer

	config atomic.Pointer[Config]

	mu sync.Mutex
	// Guarded by mu. The holder of mu is the writer of every log.
	watches  map[string]*watch
	revision uint64 // of the last write
	bytes    int64  // keys and values of all live resources, and unusedWatchBytes
}

var _ pb.WatchServiceServer = (*Store)(nil)

// watch is one named collection.
type watch struct {
	// Guarded by the store's mu.
	users   int  // sources and writers that were not released
	charged bool // the store's bytes have unusedWatchBytes of it

	// Static after construction. The log's writing side belongs to the holder of the
	// store's mu; any goroutine may read it.
	name string
	log  *log.Writer
}

// New returns an empty store.
func New(c Config) *Store {
	s := &Store{watches: make(map[string]*watch)}
	s.Reconfigure(c)
	return s
}

// Reconfigure changes the limits for writes from now on.
func (s *Store) Reconfigure(c Config) {
	c.MaxValueBytes = cmp.Or(c.MaxValueBytes, DefaultMaxValueBytes)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	s.config.Store(&c)
}

// open returns the watch with a name, creating it if there is none.
func (s *Store) open(name string) (*watch, error) {
	if err := stream.CheckWatchName(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[name]; w != nil {
		w.users++
		s.keep(w)
		return w, nil
	}
	w := &watch{users: 1, name: name, log: log.NewWriter(log.Config{Watch: name})}
	if _, err := w.log.Replace(newEpoch(), nil, s.revision); err != nil {
		return nil, err
	}
	w.log.SetStatus(stream.Status{State: stream.InSync, Since: w.log.Snapshot().Status().Since})
	s.watches[name] = w
	return w, nil
}

// Release tells the store that a Source and a Writer of a watch are no longer used. A watch
// without resources that nobody uses is forgotten, and what was deleted from it.
func (s *Store) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[name]
	if w == nil {
		return
	}
	w.users -= 2
	s.keep(w)
}

// current returns the watch that has the name of w now: w itself, unless it was forgotten
// and made again. The caller holds mu.
func (s *Store) current(w *watch) *watch {
	if now := s.watches[w.name]; now != nil {
		return now
	}
	return w
}

// keep makes a watch known, unless nobody uses it and it has no resources. One that nobody
// uses is charged for what it takes by itself. The caller holds mu.
func (s *Store) keep(w *watch) {
	used, empty := w.users > 0, w.log.Snapshot().Count() == 0
	s.watches[w.name] = w
	if !used && empty {
		delete(s.watches, w.name)
	}
	if charged := !used && !empty; charged != w.charged {
		w.charged = charged
		s.bytes += map[bool]int64{true: unusedWatchBytes, false: -unusedWatchBytes}[charged]
	}
}

// MaxValueBytes is the size of the largest value accepted.
func (s *Store) MaxValueBytes() int64 { return int64(s.config.Load().MaxValueBytes) }

// find returns the watch with a name, or nil if there is none.
func (s *Store) find(name string) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[name]
}

func newEpoch() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it does not fail, it ends the process
	return hex.EncodeToString(b[:])
}
