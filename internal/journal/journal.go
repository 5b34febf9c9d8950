package journal

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/stream/watch"
)

// Config says where a journal is.
type Config struct {
	// Dir is the folder of the file. It is made if its parent exists.
	Dir string
	// MaxAge is the age from which on what is kept of a watch is not used; 24 h by default.
	MaxAge time.Duration
	// Logger logs what is wrong with the journal; nil: nothing is logged.
	Logger *slog.Logger
	// BeforeCommit is that of the file; see [disk.Config].
	BeforeCommit func() error

	maxBytes int64 // of the file, in tests; 0: any
}

const (
	// FileName is the name of the file in the folder.
	FileName = "journal.db"
	// AsideName is the name of one that cannot be trusted. It is removed after a day.
	AsideName = FileName + ".aside"
)

// fileFormat is the format of the file:
//
//	watches/NAME/watch         record, as JSON
//	watches/NAME/entries/KEY   flags, seq, revision, value
//	watches/NAME/deletes/SEQ   flags, milliseconds, place, revision, key
//
// Seqs are those of the log: 8 bytes, the most significant first.
const fileFormat = 1

const (
	// every is the time from a commit to its write. A write that takes long waits longer for the next one, which has
	// fewer versions of each resource to write then: share times as long as it took, and mostEvery at most. So however
	// fast the commits are, a journal takes a quarter of one processor, and more only if a write takes longer than a third of mostEvery.
	every, mostEvery = 200 * time.Millisecond, 2 * time.Second
	share            = 3
	// idleEvery is the same where only the revision has risen.
	idleEvery = 5 * time.Second
	// endWithin bounds the last write of a watch.
	endWithin = 10 * time.Second
	// compactedFrom is the age from which on the file is rewritten, and one that was set aside is removed, so that
	// nothing that was deleted or replaced is on the disk for longer than a day. That age is looked at a while after
	// the start, and then each time compactionCheck has passed.
	compactedFrom   = 23 * time.Hour
	compactionStart = time.Minute
	compactionCheck = 30 * time.Minute
)

// Journal is the open file. Its methods may be called from any goroutine. A nil one keeps nothing.
type Journal struct {
	// Static after construction.
	config Config
	file   *disk.File

	wake  chan struct{} // something was committed
	stop  chan struct{} // closed by Close
	ended chan struct{} // closed when run has ended

	// Atomic.
	waiting atomic.Int32 // watches that wait for the file; no large write goes on meanwhile
	behind  atomic.Int64 // since when there is something to write, in nanoseconds; 0: there is nothing
	written atomic.Uint64
	commits atomic.Uint64
	waited  atomic.Int64
	failed  atomic.Bool

	mu      sync.Mutex // guards the following fields, and is held while the file is written
	watches map[string]*Watch
	number  uint64
}

// Open opens the journal in a folder, and begins to write. A file that cannot be trusted is set aside.
// The caller must close the journal.
func Open(c Config) (*Journal, error) {
	c.MaxAge = cmp.Or(c.MaxAge, 24*time.Hour)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.removeAside(time.Now())
	file, err := openFile(c)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{
		config: c, file: file, watches: map[string]*Watch{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if j.number, err = file.Sequence(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("journal: %w", err)
	}
	go j.run()
	return j, nil
}

// openFile opens the file. One that cannot be trusted is replaced with an empty one.
func openFile(c Config) (*disk.File, error) {
	path := filepath.Join(c.Dir, FileName)
	open := func() (*disk.File, error) {
		return disk.Open(disk.Config{Path: path, Kind: "journal", Format: fileFormat, MaxBytes: c.maxBytes, BeforeCommit: c.BeforeCommit})
	}
	file, err := open()
	var why string
	var damaged *disk.DamagedError
	var foreign *disk.ForeignError
	switch {
	case err == nil && file.Restored() == "":
		return file, nil
	case err == nil:
		why = "it is a copy that was put in its place: " + file.Restored()
		if err := file.Close(); err != nil {
			return nil, err
		}
	case errors.As(err, &damaged), errors.As(err, &foreign):
		why = err.Error()
	default:
		return nil, err
	}
	aside := filepath.Join(c.Dir, AsideName)
	if err := os.Rename(path, aside); err != nil {
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(aside, now, now) // else its age is that of its last write
	c.Logger.Warn("the journal cannot be trusted: it is set aside for a day, and watches begin without it", "path", aside, "because", why)
	return open()
}

// removeAside removes a file that was set aside a day ago.
func (c *Config) removeAside(now time.Time) {
	aside := filepath.Join(c.Dir, AsideName)
	info, err := os.Lstat(aside)
	if err != nil || !old(info.ModTime(), now) {
		return
	}
	if err := os.Remove(aside); err != nil {
		c.Logger.Warn("a journal that was set aside is not removed: its values are still on the disk", "path", aside, "error", err.Error())
		return
	}
	c.Logger.Info("a journal that was set aside a day ago is removed", "path", aside)
}

// old reports whether a file that was made at a time has what is to leave the disk. The clock may have been set back.
func old(made, now time.Time) bool {
	age := now.Sub(made)
	return age < 0 || age >= compactedFrom
}

// Close writes nothing more, and closes the file. Watches must have ended.
func (j *Journal) Close() {
	if j == nil {
		return
	}
	close(j.stop)
	closed := make(chan error, 1)
	go func() {
		<-j.ended
		closed <- j.file.Close()
	}()
	select {
	case err := <-closed:
		if err != nil {
			j.config.Logger.Error("the journal was not closed", "path", j.file.Path(), "error", err.Error())
		}
	case <-time.After(endWithin):
		j.config.Logger.Error("the journal was not closed: its disk does not answer", "path", j.file.Path())
	}
}

// Retain drops what the file has of watches without one of these names.
func (j *Journal) Retain(names []string) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed.Load() {
		return
	}
	err := j.update(func(tx *disk.Tx) error {
		all, err := tx.MakeBucket(watchesBucket)
		if err != nil {
			return err
		}
		var gone [][]byte
		err = all.EachBucket(func(name []byte) error {
			if !slices.Contains(names, string(name)) && j.watches[string(name)] == nil {
				gone = append(gone, slices.Clone(name))
			}
			return nil
		})
		for _, name := range gone {
			if err == nil {
				err = all.DropBucket(name)
			}
		}
		return err
	})
	if err != nil {
		j.fail(err)
	}
}

// Stats returns how the journal is. A nil one could not be opened.
func (j *Journal) Stats() watch.JournalStats {
	if j == nil {
		return watch.JournalStats{Failed: true}
	}
	s := watch.JournalStats{Commits: j.commits.Load(), Written: j.written.Load(), Waited: time.Duration(j.waited.Load()), Failed: j.failed.Load()}
	s.FileBytes, s.FreeBytes = j.file.Sizes()
	if at := j.behind.Load(); at != 0 {
		s.Behind = max(0, time.Since(time.Unix(0, at)))
	}
	return s
}

// notify is called when a log has changed.
func (j *Journal) notify() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run writes what is new until the journal is closed.
func (j *Journal) run() {
	defer close(j.ended)
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	compaction := time.NewTimer(compactionStart)
	defer compaction.Stop()
	next := every
	for wait := time.Duration(0); ; {
		wake := j.wake
		if wait > 0 && wait < idleEvery {
			wake = nil
		}
		select {
		case <-j.stop:
			return
		case <-wake:
			j.behind.CompareAndSwap(0, time.Now().UnixNano())
			wait = next
			timer.Reset(wait)
		case <-timer.C:
			start := time.Now()
			if wait = 0; j.flush() {
				wait = idleEvery
				timer.Reset(wait)
			}
			next = min(max(every, share*time.Since(start)), mostEvery)
		case <-compaction.C:
			j.config.removeAside(time.Now())
			j.compact(time.Now())
			compaction.Reset(compactionCheck)
		}
	}
}

// compact rewrites the file if it is old. Commits go on meanwhile, and are written afterwards.
func (j *Journal) compact(now time.Time) {
	if !old(j.file.Made(), now) || j.waiting.Load() > 0 || j.failed.Load() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch err := j.file.Compact(); {
	case errors.Is(err, disk.ErrFailed):
		j.fail(err)
	case err != nil:
		j.config.Logger.Warn("the journal was not compacted: values that were deleted or replaced are still on the disk", "path", j.file.Path(), "error", err.Error())
	}
}

// flush writes what is new. It reports whether something is left that can wait.
func (j *Journal) flush() (left bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed.Load() {
		return false
	}
	since := j.behind.Load()
	defer j.behind.CompareAndSwap(since, 0)
	var small []*part
	for _, name := range slices.Sorted(maps.Keys(j.watches)) {
		p := j.watches[name].next(time.Now())
		switch {
		case p == nil:
		case p.idle:
			left = true
		case p.large:
			j.writeLarge(p)
		default:
			small = append(small, p)
		}
	}
	if len(small) > 0 {
		j.writeSmall(small)
	}
	return left
}

// fail ends all writing: what the disk has is not known.
func (j *Journal) fail(err error) {
	if j.failed.Swap(true) {
		return
	}
	j.config.Logger.Error("a write to the disk has failed: the journal takes nothing more until a restart, and watches go on without it",
		"path", j.file.Path(), "error", err.Error())
}

// update is one transaction of the file.
func (j *Journal) update(fn func(tx *disk.Tx) error) error {
	start := time.Now()
	err := j.file.Update(func(tx *disk.Tx) error {
		j.number++
		if err := fn(tx); err != nil {
			return err
		}
		return tx.SetSequence(j.number)
	})
	j.commits.Add(1)
	j.waited.Add(int64(time.Since(start)))
	return err
}
