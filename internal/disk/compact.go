package disk

import (
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// compactFrom is the size from which on a file is worth compacting.
	compactFrom = 1 << 20
	// compactStep is how many bytes are copied in one transaction.
	compactStep = 16 << 20
	// unfinished is the end of the name of a file that is being made.
	unfinished = ".compacting"
)

// Compact writes what the file has into a new one, which takes its place when it is whole and on the
// disk. Until then the old one stays, is read, and takes as much again as the disk must have. An Update waits.
func (f *File) Compact() error {
	return f.rewrite("compacting", func(to *bbolt.DB) error {
		if err := bbolt.Compact(to, f.db, compactStep); err != nil {
			return err
		}
		return f.rebirth(to, func(*header) {})
	})
}

// convert is Compact into the format of the configuration.
func (f *File) convert() error {
	err := f.rewrite("converting", func(to *bbolt.DB) error {
		err := f.View(func(tx *Tx) error { return f.convertTo(to, tx) })
		if err != nil {
			return err
		}
		return f.rebirth(to, func(h *header) { h.Format = f.config.Format })
	})
	if err == nil {
		f.format = f.config.Format
	}
	return err
}

// convertTo copies the header, and converts the rest.
func (f *File) convertTo(to *bbolt.DB, from *Tx) error {
	update := func(fn func(*Tx) error) error {
		return to.Update(func(tx *bbolt.Tx) error { return fn(&Tx{tx: tx, path: f.config.Path}) })
	}
	h, err := from.header()
	if err != nil {
		return err
	}
	sequence, err := from.Sequence()
	if err != nil {
		return err
	}
	err = update(func(tx *Tx) error {
		if err := tx.putHeader(h); err != nil {
			return err
		}
		return tx.SetSequence(sequence)
	})
	if err != nil {
		return err
	}
	return f.config.Convert(f.format, from, update)
}

// rewrite makes a new file with fill, which takes the place of the old one.
func (f *File) rewrite(what string, fill func(to *bbolt.DB) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Err(); err != nil {
		return err
	}
	path := f.config.Path
	if f.state == nil {
		return fmt.Errorf("%s: %w", path, os.ErrClosed)
	}
	if err := f.copyTo(path+unfinished, fill); err != nil {
		removeUnfinished(path)
		return fmt.Errorf("%s %s: %w", what, path, err)
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		removeUnfinished(path)
		return fmt.Errorf("%s %s: %w", what, path, err)
	}
	// From here on, what the old one takes is lost.
	err := f.replaced()
	if err != nil {
		err = fmt.Errorf("%w: after %s: %w", ErrFailed, what, err)
		f.failed.Store(&err)
	}
	f.made = time.Now()
	return err
}

// replaced opens the file that has taken the place of the old one.
func (f *File) replaced() error {
	if err := syncFolder(f.config.Path); err != nil {
		return err
	}
	f.replacing.Lock()
	defer f.replacing.Unlock()
	if err := f.db.Close(); err != nil {
		return err
	}
	db, err := openDB(f.config.Path, f.config.MaxBytes)
	if err != nil {
		return err
	}
	f.db = db
	return nil
}

// copyTo makes a new file with fill, and makes it last.
func (f *File) copyTo(path string, fill func(to *bbolt.DB) error) error {
	removeUnfinished(f.config.Path)
	to, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	err = guarded(f.config.Path, func() error { return fill(to) })
	if err == nil {
		err = to.Sync()
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	return err
}

// rebirth records in a new file which file it is, and what else change does.
func (f *File) rebirth(to *bbolt.DB, change func(*header)) error {
	return to.Update(func(tx *bbolt.Tx) error {
		t := &Tx{tx: tx, path: f.config.Path}
		h, err := t.header()
		if err != nil {
			return err
		}
		h.Birth, h.Made = birthOf(to.Path()), time.Now().UTC()
		change(h)
		return t.putHeader(h)
	})
}

func removeUnfinished(path string) { _ = os.Remove(path + unfinished) }
