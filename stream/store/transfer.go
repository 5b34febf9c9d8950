package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/stream"
)

// Report is what Check finds in a file.
type Report struct {
	Revision             uint64 // of the newest write
	FileBytes, FreeBytes int64
	Watches              []WatchReport // sorted by name
}

// WatchReport is what Check finds of a watch.
type WatchReport struct {
	Name      string
	Epoch     string
	Resources int
	Deletes   int    // that are remembered
	Bytes     int64  // of keys and values
	Horizon   uint64 // the oldest revision from which clients can resume
}

// Check reads all of a file that no process has open, and changes nothing.
func Check(path string) (r Report, err error) {
	err = readFile(path, func(f *fileWatch, resources []found) error {
		w := WatchReport{Name: f.name, Epoch: f.stored.Epoch, Horizon: f.stored.Horizon, Resources: len(resources), Deletes: len(f.stored.deletes), Bytes: f.bytes}
		r.Watches = append(r.Watches, w)
		return nil
	}, func(f *disk.File, newest uint64) {
		r.Revision = newest
		r.FileBytes, r.FreeBytes = f.Sizes()
	})
	return r, err
}

// Compact rewrites a file that no process has open, without what was deleted or replaced. It is checked before.
// Until the new one is whole, the old one stays, so that there must be room for both.
func Compact(path string) (before, after int64, err error) {
	r, err := Check(path)
	if err != nil {
		return 0, 0, err
	}
	s, err := Open(Config{Path: path}) // a copy begins new epochs
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	if err := s.disk.file.Compact(); err != nil {
		return 0, 0, err
	}
	after, _ = s.disk.file.Sizes()
	return r.FileBytes, after, nil
}

// readFile calls fn for each watch of a file, and before that about with the revision of the newest write.
func readFile(path string, fn func(f *fileWatch, resources []found) error, about func(f *disk.File, newest uint64)) error {
	return inFile(path, func(file *disk.File, tx *disk.Tx, newest uint64) error {
		about(file, newest)
		return eachWatch(tx, file.Format(), func(f *fileWatch) error {
			resources, err := f.resources(newest)
			if err != nil {
				return err
			}
			deletes, err := f.deleted(newest)
			if err != nil {
				return err
			}
			if _, err := f.remembered(resources, deletes); err != nil {
				return err
			}
			return fn(f, resources)
		})
	})
}

// inFile calls fn with a file that no process has open, and the revision of its newest write.
func inFile(path string, fn func(f *disk.File, tx *disk.Tx, newest uint64) error) error {
	file, err := disk.OpenToRead(fileConfig(path))
	if err != nil {
		return err
	}
	defer file.Close()
	return file.View(func(tx *disk.Tx) error {
		newest, err := tx.Sequence()
		if err != nil {
			return err
		}
		return fn(file, tx, newest)
	})
}

// exported is one line of an export: the first has Format and Revision, the last has End, and each of
// the others is a resource.
type exported struct {
	Format      int             `json:"watchtide_store,omitempty"`
	Watch       string          `json:"watch,omitempty"`
	Key         string          `json:"key,omitempty"`
	KeyEncoding string          `json:"key_encoding,omitempty"`
	Revision    uint64          `json:"revision,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
	End         *int            `json:"end,omitempty"` // how many resources there are
}

const exportFormat = 1

// Export writes the resources of a file that no process has open, a line of JSON for each, and returns
// how many there are. It changes nothing in the file.
func Export(path string, out io.Writer) (n int, err error) {
	w := bufio.NewWriter(out)
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	err = readFile(path, func(f *fileWatch, resources []found) error {
		for i := range resources {
			r := resources[i].resource()
			n++
			key, encoding := stream.WireKey(r.Key)
			line := exported{Watch: f.name, Key: key, KeyEncoding: encoding, Revision: r.Revision, Value: r.Value}
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
		return nil
	}, func(_ *disk.File, newest uint64) {
		err = lines.Encode(exported{Format: exportFormat, Revision: newest})
	})
	if err == nil {
		err = lines.Encode(exported{End: &n})
	}
	if err == nil {
		err = w.Flush()
	}
	return n, err
}

// Import makes the file of a store from what Export wrote, and returns how many resources it has. Its
// watches begin new epochs. Revisions stay, and go on from the newest one; a resource without one gets
// the next. There must be no file yet; there is none after an error.
func Import(path string, in io.Reader) (n int, err error) {
	for _, one := range []string{path, path + ".state"} {
		if _, err := os.Lstat(one); !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("%s exists: move it away, or import into another path", one)
		}
	}
	file, err := disk.Open(fileConfig(path))
	if err != nil {
		return 0, err
	}
	i := &importer{file: file, watches: map[string]*importedWatch{}, revisions: map[uint64]bool{}}
	err = i.run(in)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
		_ = os.Remove(path + ".state")
	}
	return i.count, err
}

// importer makes a file. Owned by Import.
type importer struct {
	file      *disk.File
	line      int
	count     int
	newest    uint64
	ended     bool
	watches   map[string]*importedWatch
	revisions map[uint64]bool
}

type importedWatch struct {
	stored
	keys map[string]bool
}

func (i *importer) run(in io.Reader) error {
	lines := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for !i.ended {
		err := i.file.Update(func(tx *disk.Tx) error { return i.step(tx, lines) })
		if err != nil {
			return err
		}
	}
	if lines.More() {
		return fmt.Errorf("line %d: there is more after the end", i.line+1)
	}
	return nil
}

// step writes some of the lines.
func (i *importer) step(tx *disk.Tx, lines *json.Decoder) error {
	for bytes := 0; bytes < mostBytes; {
		var e exported
		i.line++
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return fmt.Errorf("the export ends at line %d without its last line, so it is not whole", i.line-1)
		} else if err != nil {
			return fmt.Errorf("line %d: %w", i.line, err)
		}
		switch {
		case e.Format > exportFormat:
			return fmt.Errorf("line %d: it is of format %d, and this version knows formats up to %d", i.line, e.Format, exportFormat)
		case e.Format > 0:
			i.newest = max(i.newest, e.Revision)
		case e.End != nil && *e.End != i.count:
			return fmt.Errorf("line %d: it ends after %d resources, %d came", i.line, *e.End, i.count)
		case e.End != nil:
			i.ended = true
			return i.finish(tx)
		default:
			if err := i.add(tx, &e); err != nil {
				return fmt.Errorf("line %d: %w", i.line, err)
			}
			bytes += len(e.Key) + len(e.Value) + 100
		}
	}
	return tx.SetSequence(i.newest)
}

// add writes one resource.
func (i *importer) add(tx *disk.Tx, e *exported) error {
	if err := stream.CheckWatchName(e.Watch); err != nil {
		return err
	}
	key, err := stream.KeyFromWire(e.Key, e.KeyEncoding)
	if err != nil {
		return err
	}
	value, ok := stream.CompactJSON(e.Value)
	if e.Revision == 0 {
		e.Revision = i.newest + 1
	}
	w := i.watches[e.Watch]
	if w == nil {
		w = &importedWatch{stored: stored{record: record{Epoch: newEpoch()}}, keys: map[string]bool{}}
		i.watches[e.Watch] = w
	}
	switch {
	case key == "" || len(key) > MaxKeyBytes:
		return fmt.Errorf("key %.80q: want 1 to %d bytes", key, MaxKeyBytes)
	case !ok:
		return fmt.Errorf("the value of key %.80q is no JSON text", key)
	case w.keys[key]:
		return fmt.Errorf("key %.80q of watch %s comes a second time", key, e.Watch)
	case i.revisions[e.Revision]:
		return fmt.Errorf("revision %d of key %.80q comes a second time", e.Revision, key)
	}
	w.keys[key], i.revisions[e.Revision] = true, true
	i.newest = max(i.newest, e.Revision)
	i.count++
	entries, err := tx.MakeBucket(bucketOf(entriesBucket, e.Watch))
	if err != nil {
		return err
	}
	entries.Inserted()
	sum, err := entries.PutParts([]byte(key), number(e.Revision), value)
	w.Entries.add(sum)
	return err
}

// finish writes what is known at the end.
func (i *importer) finish(tx *disk.Tx) error {
	all, err := tx.MakeBucket(watchesBucket)
	if err != nil {
		return err
	}
	for name, w := range i.watches {
		w.Horizon = i.newest
		if err := w.putRecord(all, name); err != nil {
			return err
		}
	}
	return tx.SetSequence(i.newest)
}
