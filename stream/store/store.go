package store

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
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
	// Path is the file that keeps the store. A relative one starts at the working directory. Empty: the
	// store is in memory, and lost when the process ends.
	Path string `yaml:"path,is=file of a store"`
	// MaxValueBytes is the size of the largest value accepted, as written.
	MaxValueBytes int64 `yaml:"max_value_bytes"`
	// MaxBytes is the maximum size of all live keys and values, in all watches
	// together, and of 10 KiB for each watch that was released and has resources. The logs take
	// up to one and a half times that memory, and deletes are remembered for a while.
	MaxBytes int64 `yaml:"max_bytes"`
	// Memory is a ceiling that the logs share with the watches that follow the store; nil: none.
	// It is that of New. A write that does not fit is refused.
	Memory *memory.Ceiling `yaml:"-"`
	// History bounds how many deletes are remembered, and for how long; the zero value of a field is as
	// in log.Retention. It is that of Open, or of New.
	History log.Retention `yaml:"-"`
	// Logger is told when the disk fails, and how a file was found; nil: nobody is.
	Logger *slog.Logger `yaml:"-"`
}

// Store is a writable collection of resources, by watch. Any goroutine may call its methods.
type Store struct {
	pb.UnimplementedWatchServiceServer

	// Static after construction.
	memory  *memory.Ceiling // nil: nothing is counted
	history log.Retention
	disk    *durable // nil: the store is in memory alone

	config atomic.Pointer[Config]
	queue  queue // writes that wait for their turn

	// turn is held by whoever changes the store, also while the disk is waited for. It is locked
	// before mu. Its holder is the writer of every log.
	turn sync.Mutex

	mu sync.Mutex
	// Guarded by mu; changed only by the holder of turn as well.
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

	stored *stored // what the disk has of it; nil: nothing. Guarded by the store's turn

	// Static after construction. The log's writing side belongs to the holder of the
	// store's turn; any goroutine may read it.
	name    string
	log     *log.Writer
	account *memory.Account // nil: nothing is counted
}

// New returns an empty store in memory; the path is not used.
func New(c Config) *Store {
	s := &Store{memory: c.Memory, history: c.History.WithDefaults(), watches: make(map[string]*watch)}
	s.Reconfigure(c)
	return s
}

// Open returns the store that the file at the path keeps, which is made if there is none; without a
// path, what New returns. The caller must close it.
func Open(c Config) (*Store, error) {
	s := New(c)
	if c.Path == "" {
		return s, nil
	}
	var err error
	if s.disk, err = openDurable(c); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		_ = s.disk.file.Close()
		return nil, err
	}
	return s, nil
}

// Reconfigure changes the limits for writes from now on.
func (s *Store) Reconfigure(c Config) {
	c.MaxValueBytes = cmp.Or(c.MaxValueBytes, DefaultMaxValueBytes)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	s.config.Store(&c)
}

// Path returns the path of the file; "": the store is in memory.
func (s *Store) Path() string {
	if s.disk == nil {
		return ""
	}
	return s.disk.file.Path()
}

// open returns the watch with a name, creating it if there is none.
func (s *Store) open(name string) (*watch, error) {
	if err := stream.CheckWatchName(name); err != nil {
		return nil, err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[name]; w != nil {
		w.users++
		s.keep(w)
		return w, nil
	}
	w := s.newWatch(name)
	w.users = 1
	if _, err := w.log.Replace(newEpoch(), nil, s.revision); err != nil {
		return nil, err
	}
	w.inSync()
	s.watches[name] = w
	return w, nil
}

// newWatch returns an empty watch without users.
func (s *Store) newWatch(name string) *watch {
	w := &watch{name: name}
	if s.memory != nil && !s.closed {
		w.account = memory.NewFixedAccount(s.memory)
	}
	w.log = log.NewWriter(log.Config{Watch: name, Account: w.account, History: s.history})
	return w
}

func (w *watch) inSync() {
	w.log.SetStatus(stream.Status{State: stream.InSync, Since: w.log.Snapshot().Status().Since})
}

// Close ends the counting of what the store holds, and closes its file: nobody will use it any more.
func (s *Store) Close() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, w := range s.watches {
		w.account.Leave()
	}
	if s.disk != nil {
		s.disk.close()
	}
}

// Release tells the store that a Source and a Writer of a watch are no longer used. A watch
// without resources that nobody uses is forgotten, and what was deleted from it.
func (s *Store) Release(name string) {
	s.turn.Lock()
	defer s.turn.Unlock()
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
		s.disk.forget(w)
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
