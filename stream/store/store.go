package store

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	pb "github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
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

// Config bounds a Store. The zero value of a field is its default. The fields with a key are those of a
// source of type "store" in a configuration file.
type Config struct {
	// MaxValueBytes is the size of the largest value accepted, as written.
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the maximum size of all live keys and values, in all watches
	// together, and of 10 KiB for each watch that was released and has resources. The logs take
	// up to one and a half times that memory, and deletes are remembered for a while.
	MaxBytes int64 `yaml:"max_bytes"`
	// Memory is a ceiling that the logs share with the watches that follow the store; nil: none.
	// It is that of New. A write that does not fit is refused.
	Memory *memory.Ceiling `yaml:"-"`
}

// Store is a writable collection of resources in memory, by watch. Any goroutine
// may call its methods.
type Store struct {
	pb.UnimplementedWatchServiceServer

	memory *memory.Ceiling // static after construction; nil: nothing is counted
	config atomic.Pointer[Config]

	mu sync.Mutex
	// Guarded by mu. The holder of mu is the writer of every log.
	watches  map[string]*watch
	revision uint64 // of the last write
	bytes    int64  // keys and values of all live resources, and unusedWatchBytes
	closed   bool   // nothing is counted in memory any more
}

var _ pb.WatchServiceServer = (*Store)(nil)

// watch is one named collection.
type watch struct {
	// Guarded by the store's mu.
	users   int  // sources and writers that were not released
	charged bool // the store's bytes have unusedWatchBytes of it

	// Static after construction. The log's writing side belongs to the holder of the
	// store's mu; any goroutine may read it.
	name    string
	log     *log.Writer
	account *memory.Account // nil: nothing is counted
}

// New returns an empty store.
func New(c Config) *Store {
	s := &Store{memory: c.Memory, watches: make(map[string]*watch)}
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
	w := s.newWatch(name)
	if _, err := w.log.Replace(newEpoch(), nil, s.revision); err != nil {
		return nil, err
	}
	w.log.SetStatus(stream.Status{State: stream.InSync, Since: w.log.Snapshot().Status().Since})
	s.watches[name] = w
	return w, nil
}

// newWatch returns an empty watch with one user.
func (s *Store) newWatch(name string) *watch {
	w := &watch{users: 1, name: name}
	if s.memory != nil && !s.closed {
		w.account = memory.NewFixedAccount(s.memory)
	}
	w.log = log.NewWriter(log.Config{Watch: name, Account: w.account})
	return w
}

// Close ends the counting of what the store holds: nobody will use it any more.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, w := range s.watches {
		w.account.Leave()
	}
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
	known, used, empty := s.watches[w.name] == w, w.users > 0, w.log.Snapshot().Count() == 0
	s.watches[w.name] = w
	if !used && empty {
		delete(s.watches, w.name)
	}
	switch {
	case s.closed, s.watches[w.name] == nil:
		w.account.Leave()
	case !known:
		w.account.Rejoin() // it was forgotten, and a late write has made it known again
	}
	if charged := !used && !empty; charged != w.charged {
		w.charged = charged
		s.bytes += map[bool]int64{true: unusedWatchBytes, false: -unusedWatchBytes}[charged]
	}
}

// MaxValueBytes is the size of the largest value accepted.
func (s *Store) MaxValueBytes() int64 { return s.config.Load().MaxValueBytes }

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
