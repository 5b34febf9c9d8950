package disk

import (
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

const (
	// compactFrom is the size from which on a file is worth compacting.
	compactFrom = 1 << 20
	// compactStep is how many bytes are copied in one transaction.
	compactStep = 16 << 20
	// unfinished is the end of the name of a copy that is being made.
	unfinished = ".compacting"
)

// Compact writes what the file has into a new one, which takes its place when it is whole and on the
// disk. Until then the old one stays. No other call may be under way.
func (f *File) Compact() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Err(); err != nil {
		return err
	}
	path := f.config.Path
	if err := f.copyTo(path + unfinished); err != nil {
		removeUnfinished(path)
		return fmt.Errorf("compacting %s: %w", path, err)
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		removeUnfinished(path)
		return fmt.Errorf("compacting %s: %w", path, err)
	}
	// From here on, what the old one takes is lost.
	err := f.replaced()
	if err != nil {
		err = fmt.Errorf("%w: after compacting: %w", ErrFailed, err)
		f.failed.Store(&err)
	}
	return err
}

// replaced opens the file that has taken the place of the old one.
func (f *File) replaced() error {
	if err := syncFolder(f.config.Path); err != nil {
		return err
	}
	if err := f.db.Close(); err != nil {
		return err
	}
	db, err := openDB(f.config.Path, f.config.MaxBytes)
	if err != nil {
		return err
	}
	f.db = db
	f.measure()
	return nil
}

// copyTo writes everything into a new file, and makes it last.
func (f *File) copyTo(path string) error {
	removeUnfinished(f.config.Path)
	to, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	err = guarded(f.config.Path, func() error {
		if err := bbolt.Compact(to, f.db, compactStep); err != nil {
			return err
		}
		return rebirth(to, path)
	})
	if err == nil {
		err = to.Sync()
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}

// rebirth records in a new file which file it is.
func rebirth(db *bbolt.DB, path string) error {
	return db.Update(func(tx *bbolt.Tx) error {
		t := &Tx{tx: tx, path: path}
		h, err := t.header()
		if err != nil {
			return err
		}
		h.Birth = birthOf(path)
		return t.putHeader(h)
	})
}

func removeUnfinished(path string) { _ = os.Remove(path + unfinished) }
