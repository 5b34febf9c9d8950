package disk

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// Config says which file is opened, and what it must have.
type Config struct {
	// Path is that of the file. It is created if there is none, and so is its folder.
	Path string
	// Kind names what the file has, for instance "store".
	Kind string
	// Format is the newest format that is understood.
	Format int
	// MaxBytes is the largest size of the file; 0: any.
	MaxBytes int64
	// Convert writes what a file of an older format has into a new, empty one of Format, with as many
	// transactions as it needs; the header is not its business. nil: a file of any format up to Format is
	// left as it is.
	Convert func(format int, from *Tx, update func(func(*Tx) error) error) error
	// MustExist refuses to create the file.
	MustExist bool
	// BeforeCommit is called before each transaction is written, and its error is that of the disk: for
	// tests, of what a disk does and of what a killed process leaves. nil: nothing is called.
	BeforeCommit func() error
}

// File is an open file. Its methods may be called from any goroutine.
type File struct {
	// Static after construction.
	config   Config
	restored string
	readOnly bool
	format   int
	pageSize int64

	size, free int64 // in bytes, of a file that is only read

	failed atomic.Pointer[error] // why nothing more is taken; nil: it is

	mu    sync.Mutex // guards the following fields; held during an Update
	state *state     // nil after Close
	made  time.Time

	// replacing is held to read while db is read, and with mu to change db, which Update reads with mu alone.
	replacing sync.RWMutex
	db        *bbolt.DB
}

// header is the record of the file about itself.
type header struct {
	Kind       string    `json:"kind"`
	Format     int       `json:"format"`
	ID         string    `json:"id"`         // drawn when the file was made
	Generation uint64    `json:"generation"` // rises each time the file is opened
	Birth      string    `json:"birth"`      // of the file in its file system, see birthOf
	Made       time.Time `json:"made"`       // also by Compact
}

var (
	headerBucket = []byte("header")
	headerKey    = []byte("file")
)

// ForeignError reports a file that is not of the kind, or of no format that is understood.
type ForeignError struct{ what string }

// Error says what the file is.
func (e *ForeignError) Error() string { return e.what }

// ErrFailed is the error of a file that takes nothing more because a write to the disk has failed.
var ErrFailed = errors.New("a write to the disk has failed")

// Open opens a file, or makes it. The caller must close it.
func Open(c Config) (*File, error) {
	if err := checkPlace(c); err != nil {
		return nil, err
	}
	s, before, err := lockState(c.Path + ".state")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	f := &File{config: c, state: s}
	if err := f.open(before); err != nil {
		if f.db != nil {
			_ = f.db.Close()
		}
		s.close()
		return nil, err
	}
	return f, nil
}

// OpenToRead opens a file that no process has open, and changes nothing. The caller must close it.
func OpenToRead(c Config) (*File, error) {
	c.MustExist = true
	if err := checkPlace(c); err != nil {
		return nil, err
	}
	locked, err := lockToRead(c.Path)
	switch {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("%s: %w", c.Path, inUse(c.Path+".state"))
	case err != nil:
		return nil, err
	}
	defer locked.Close()
	used, size, err := Verify(c.Path)
	if err != nil {
		return nil, err
	}
	f := &File{config: c, readOnly: true}
	f.size, f.free = size, size-used
	err = guarded(c.Path, func() (err error) {
		f.db, err = bbolt.Open(c.Path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		return err
	})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s: %w", c.Path, inUse(c.Path+".state"))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	h, err := f.readHeader()
	if err == nil && h == nil {
		err = fmt.Errorf("%s is empty", c.Path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	f.format = h.Format
	return f, nil
}

// open opens the database and finds out whether it is the one that before is about.
func (f *File) open(before *lineage) (err error) {
	removeUnfinished(f.config.Path)
	info, err := os.Lstat(f.config.Path)
	exists := err == nil && info.Size() > 0
	if exists {
		if _, _, err := Verify(f.config.Path); err != nil {
			return err
		}
	}
	if !exists {
		if err := f.create(); err != nil {
			return err
		}
	}
	if f.db, err = openDB(f.config.Path, f.config.MaxBytes); err != nil {
		return err
	}
	f.pageSize = int64(f.db.Info().PageSize)
	h, err := f.readHeader()
	if err != nil {
		return err
	}
	var sequence uint64
	made := h == nil
	if made {
		h = &header{Kind: f.config.Kind, Format: f.config.Format, ID: newID(), Made: time.Now().UTC()}
		before = nil
	} else if sequence, err = f.Sequence(); err != nil {
		return err
	}
	birth := birthOf(f.config.Path)
	if !made {
		f.restored = h.restored(before, birth, sequence)
	}
	if !made && f.restored == "" && h.Generation != before.Generation { // it was cut off while it was opened
		if err := f.state.begin(lineage{ID: h.ID, Generation: h.Generation, Sequence: sequence}); err != nil {
			return err
		}
	}
	if err := f.enter(h, birth, sequence); err != nil {
		return err
	}
	f.format, f.made = h.Format, h.Made
	if made {
		return syncFolder(f.config.Path)
	}
	if f.format < f.config.Format && f.config.Convert != nil {
		return f.convert()
	}
	if size, free := f.Sizes(); size > compactFrom && free > size/2 {
		return f.Compact()
	}
	return nil
}

// create makes an empty database, which has its name when it is whole and on the disk: a part of one is damaged.
func (f *File) create() error {
	unnamed := f.config.Path + unfinished
	db, err := openDB(unnamed, f.config.MaxBytes)
	if err != nil {
		return err
	}
	if err = db.Close(); err == nil {
		err = os.Rename(unnamed, f.config.Path)
	}
	if err != nil {
		removeUnfinished(f.config.Path)
	}
	return err
}

// enter records in the file, and then beside it, that it is open.
func (f *File) enter(h *header, birth string, sequence uint64) error {
	h.Generation++
	h.Birth = birth
	if err := f.Update(func(tx *Tx) error { return tx.putHeader(h) }); err != nil {
		return fmt.Errorf("%s: %w", f.config.Path, err)
	}
	return f.state.begin(lineage{ID: h.ID, Generation: h.Generation, Sequence: sequence})
}

// openDB opens the database alone.
func openDB(path string, maxBytes int64) (db *bbolt.DB, err error) {
	err = guarded(path, func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: time.Second, MaxSize: int(maxBytes),
			// See BenchmarkFreelist: without it a commit writes fewer pages, and the list is read from
			// the pages that Verify has checked.
			NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
		})
		return err
	})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: another process has it open", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return db, nil
}

// Restored says why the file must be taken for a copy of an earlier state: positions of readers may be
// ahead of it, or of another history. "": it is the file that was closed, or that a crash left.
func (f *File) Restored() string { return f.restored }

// Format returns the format of the file. One that [OpenToRead] has opened may be older than that of the
// configuration.
func (f *File) Format() int { return f.format }

// Made returns when the file was made: what was deleted or replaced before is not in it.
func (f *File) Made() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

// Path returns the path of the file.
func (f *File) Path() string { return f.config.Path }

// Err returns why the file takes nothing more; nil: it does.
func (f *File) Err() error {
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Update makes a transaction. If fn returns an error, nothing is changed, and that is returned. An
// error of the disk is ErrFailed, now and from now on.
func (f *File) Update(fn func(*Tx) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Err(); err != nil {
		return err
	}
	if f.state == nil {
		return fmt.Errorf("%s: %w", f.config.Path, os.ErrClosed)
	}
	var refused error
	sequence := uint64(0)
	err := guarded(f.config.Path, func() error {
		tx, err := f.db.Begin(true)
		if err != nil {
			return err
		}
		defer tx.Rollback() // nothing, after a commit
		t := &Tx{tx: tx, path: f.config.Path}
		if refused = fn(t); refused != nil {
			return nil
		}
		sequence = t.sequence
		if f.config.BeforeCommit != nil {
			if err := f.config.BeforeCommit(); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %s: %w", ErrFailed, f.config.Path, err)
		f.failed.Store(&err)
		return err
	case refused != nil:
		return refused
	case sequence > 0:
		f.state.advance(sequence)
	}
	return nil
}

// View reads a state of the file.
func (f *File) View(fn func(*Tx) error) error {
	f.replacing.RLock()
	defer f.replacing.RUnlock()
	return guarded(f.config.Path, func() error {
		return f.db.View(func(tx *bbolt.Tx) error { return fn(&Tx{tx: tx, path: f.config.Path}) })
	})
}

// Sequence returns the newest number that a transaction has set.
func (f *File) Sequence() (n uint64, err error) {
	err = f.View(func(tx *Tx) error {
		n, err = tx.Sequence()
		return err
	})
	return n, err
}

// Sizes returns the size of the file, and how much of it is free. It is not measured at each
// transaction, which that would make slower.
func (f *File) Sizes() (size, free int64) {
	if f.readOnly {
		return f.size, f.free
	}
	if info, err := os.Stat(f.config.Path); err == nil {
		size = info.Size()
	}
	f.replacing.RLock()
	defer f.replacing.RUnlock()
	stats := f.db.Stats()
	return size, int64(stats.FreePageN+stats.PendingPageN) * f.pageSize
}

// Close closes the file. A file that has failed is left as it is.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readOnly {
		return f.db.Close()
	}
	if f.state == nil {
		return nil
	}
	err := f.db.Close()
	f.state.end(f.Err() == nil)
	f.state = nil
	return err
}

// guarded calls fn. A panic of the database, and a fault of the memory that it maps, which a file that
// became shorter causes, are errors.
func guarded(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &DamagedError{Path: path, What: fmt.Sprint(r)}
		}
	}()
	return fn()
}

func (f *File) readHeader() (h *header, err error) {
	err = f.View(func(tx *Tx) error {
		if tx.Bucket(headerBucket) == nil {
			if other, _ := tx.tx.Cursor().First(); other != nil {
				return &ForeignError{fmt.Sprintf("%s is a database of another program: want a new path", f.config.Path)}
			}
			return nil
		}
		if h, err = tx.header(); err != nil {
			return err
		}
		return h.check(f.config)
	})
	return h, err
}

// header returns what the file says about itself.
func (tx *Tx) header() (*header, error) {
	b := tx.Bucket(headerBucket)
	if b == nil {
		return nil, fmt.Errorf("%s has no header", tx.path)
	}
	raw, err := b.Get(headerKey)
	if err != nil {
		return nil, err
	}
	h := &header{}
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, b.damaged(headerKey, "it is no header")
	}
	return h, nil
}

func (tx *Tx) putHeader(h *header) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b, err := tx.MakeBucket(headerBucket)
	if err != nil {
		return err
	}
	return b.Put(headerKey, raw)
}

func (h *header) check(c Config) error {
	switch {
	case h.Kind != c.Kind:
		return &ForeignError{fmt.Sprintf("%s is the file of a %s, not of a %s: want another path", c.Path, h.Kind, c.Kind)}
	case h.Format > c.Format:
		return &ForeignError{fmt.Sprintf("%s has format %d, and this version knows formats up to %d: use the version that wrote it, or a newer one", c.Path, h.Format, c.Format)}
	case h.Format < 1:
		return &ForeignError{fmt.Sprintf("%s has format %d: want 1 to %d", c.Path, h.Format, c.Format)}
	}
	return nil
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it does not fail, it ends the process
	return hex.EncodeToString(b[:])
}

// makeFolder makes a folder that lasts, unless it exists.
func makeFolder(folder string) error {
	err := os.Mkdir(folder, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the name of a file last.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && canSyncFolders {
		return fmt.Errorf("%s: %w", filepath.Dir(path), err)
	}
	return nil
}
