package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// formerFile makes a file of format 1, as the version that had it did, and returns what the watch notes
// has. Resources have odd revisions, deletes even ones. lacking is how many resources the record counts
// that are not there.
func formerFile(t *testing.T, path string, resources, deletes int, lacking uint64) (has map[string]string, newest uint64) {
	t.Helper()
	f, err := disk.Open(disk.Config{Path: path, Kind: "store", Format: formerFormat})
	if err != nil {
		t.Fatal(err)
	}
	has = map[string]string{}
	err = f.Update(func(tx *disk.Tx) error {
		all, err := tx.MakeBucket(watchesBucket)
		if err != nil {
			return err
		}
		for _, name := range []string{"notes", "other"} {
			b, err := all.MakeBucket([]byte(name))
			if err != nil {
				return err
			}
			r := record{Epoch: "of" + name, Horizon: 1}
			entries, _ := b.MakeBucket(entriesBucket)
			removed, _ := b.MakeBucket(deletesBucket)
			for i := range resources {
				key, value, revision := fmt.Sprint("k", i*7919%resources), fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat("x", i%50*500)), newest+1
				newest += 2
				head := append(binary.AppendUvarint(nil, uint64(len(key))), key...)
				sum, err := entries.PutParts(number(revision), head, []byte(value))
				if err != nil {
					return err
				}
				r.Entries.add(sum)
				if name == "notes" {
					has[key] = fmt.Sprintf("%s@%d", value, revision)
				}
			}
			for i := range deletes {
				newest += 2
				sum, err := removed.PutParts(number(newest), number(uint64(1700000000000)), fmt.Append(nil, "gone", i))
				if err != nil {
					return err
				}
				r.Deletes.add(sum)
			}
			r.Entries.Count += lacking
			raw, err := json.Marshal(&r)
			if err != nil {
				return err
			}
			if err := b.Put(formerRecord, raw); err != nil {
				return err
			}
		}
		return tx.SetSequence(newest)
	})
	if closed := f.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return has, newest
}

// TestAFormerFileIsConverted: everything is there, clients resume, and the version before refuses it.
func TestAFormerFileIsConverted(t *testing.T) {
	for name, resources := range map[string]int{"small": 20, "of several transactions": 1500} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			has, newest := formerFile(t, path, resources, 5, 0)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Check(path)
			if err != nil || r.Revision != newest || len(r.Watches) != 2 || r.Watches[0].Resources != resources || r.Watches[0].Deletes != 5 {
				t.Errorf("%+v, error %v", r, err)
			}
			var lines bytes.Buffer
			if n, err := Export(path, &lines); n != 2*resources || err != nil {
				t.Errorf("%d resources, error %v", n, err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("to read it has changed it, error %v", err)
			}
			if err := os.WriteFile(path+".compacting", []byte("left by a crash"), 0o600); err != nil {
				t.Fatal(err)
			}

			c := Config{Path: path, History: log.Retention{MaxAge: 1 << 62}}
			for opened := range 2 {
				s, err := Open(c)
				if err != nil {
					t.Fatal(err)
				}
				v := s.find("notes").log.Snapshot()
				horizon, _ := v.Horizon()
				if got := state(s); !maps.Equal(got, has) || v.Epoch() != "ofnotes" || v.Tombstones() != 5 || horizon != 1 {
					t.Errorf("opened %d times: %d resources of epoch %s, %d deletes, horizon %d", opened, len(got), v.Epoch(), v.Tombstones(), horizon)
				}
				got := write(t, s.Writer("notes"), "k1", fmt.Sprint(opened))
				if newest++; got.Revision != newest {
					t.Errorf("revision %d, want %d", got.Revision, newest)
				}
				has["k1"] = fmt.Sprintf("%d@%d", opened, newest)
				s.Close()
			}
			if _, err := disk.Open(disk.Config{Path: path, Kind: "store", Format: formerFormat}); err == nil || !strings.Contains(err.Error(), "has format 2, and this version knows formats up to 1") {
				t.Errorf("the version before: error %v", err)
			}
		})
	}
}

// TestADamagedFormerFileIsNotConverted, and stays as it is.
func TestADamagedFormerFileIsNotConverted(t *testing.T) {
	path := newFile(t)
	formerFile(t, path, 20, 5, 1)
	for range 2 {
		s, err := Open(Config{Path: path})
		if err == nil {
			s.Close()
			t.Fatal("it was opened")
		}
		if want := `is damaged: key "notes" of bucket "/watches": it has 20 resources, want 21`; !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f, err := disk.Open(disk.Config{Path: path, Kind: "store", Format: formerFormat})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.Lstat(path + ".compacting"); err == nil {
		t.Error("the new file is left")
	}
}

// TestContradictionsAreFound: values with the right checksums that no store writes.
func TestContradictionsAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		change func(tx *disk.Tx, r *record) error
		want   string
	}{
		"entries of no watch": {func(tx *disk.Tx, _ *record) error {
			_, err := tx.MakeBucket(bucketOf(entriesBucket, "lost"))
			return err
		}, `bucket "entries/lost": it is of no watch`},
		"no entries": {func(tx *disk.Tx, _ *record) error {
			return tx.DropBucket(bucketOf(entriesBucket, "notes"))
		}, "it has 0 resources, want 51"},
		"no deletes": {func(tx *disk.Tx, _ *record) error {
			return tx.DropBucket(bucketOf(deletesBucket, "notes"))
		}, "it has 0 deletes, want 1"},
		"a revision twice": {func(tx *disk.Tx, r *record) error {
			sum, err := tx.Bucket(bucketOf(entriesBucket, "notes")).PutParts([]byte("more"), number(7), []byte("1"))
			r.Entries.add(sum)
			return err
		}, "another resource has its revision"},
		"from the future": {func(tx *disk.Tx, r *record) error {
			sum, err := tx.Bucket(bucketOf(entriesBucket, "notes")).PutParts([]byte("more"), number(700), []byte("1"))
			r.Entries.add(sum)
			return err
		}, "it has revision 700, and the newest is 54"},
		"no revision": {func(tx *disk.Tx, r *record) error {
			sum, err := tx.Bucket(bucketOf(entriesBucket, "notes")).PutParts([]byte("more"), []byte("short"), nil)
			r.Entries.add(sum)
			return err
		}, "it is no resource"},
		"another resource": {func(tx *disk.Tx, _ *record) error {
			_, err := tx.Bucket(bucketOf(entriesBucket, "notes")).PutParts([]byte("k1"), number(2), []byte("other"))
			return err
		}, "its 51 resources are not those that were written"},
		"a value on two lines": {func(tx *disk.Tx, r *record) error {
			sum, err := tx.Bucket(bucketOf(entriesBucket, "notes")).PutParts([]byte("more"), number(53), []byte("[\n]"))
			r.Entries.add(sum)
			return err
		}, "it is no resource"},
		"a resource that was deleted": {func(tx *disk.Tx, r *record) error {
			sum, err := tx.Bucket(bucketOf(entriesBucket, "notes")).PutParts([]byte("gone"), number(53), []byte("1"))
			r.Entries.add(sum)
			return err
		}, "it is of revision 53, and was deleted at 54"},
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			filledFile(t, path)
			f, err := disk.Open(fileConfig(path))
			if err != nil {
				t.Fatal(err)
			}
			err = f.Update(func(tx *disk.Tx) error {
				all := tx.Bucket(watchesBucket)
				raw, err := all.Get([]byte("notes"))
				if err != nil {
					return err
				}
				s := &stored{}
				if err := json.Unmarshal(raw, &s.record); err != nil {
					return err
				}
				if err := test.change(tx, &s.record); err != nil {
					return err
				}
				return s.putRecord(all, "notes")
			})
			if closed := f.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			s, err := Open(Config{Path: path})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			_, checked := Check(path)
			for _, err := range []error{err, checked} {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "is damaged") {
					t.Errorf("error %v, want %q", err, test.want)
				}
			}
		})
	}
}

// TestAWriteFindsDamage: a resource that the file has otherwise than the log is not written over.
func TestAWriteFindsDamage(t *testing.T) {
	for name, change := range map[string]func(tx *disk.Tx) error{
		"missing": func(tx *disk.Tx) error { return tx.Bucket(bucketOf(entriesBucket, "notes")).Delete([]byte("k")) },
		"of another revision": func(tx *disk.Tx) error {
			return tx.Bucket(bucketOf(entriesBucket, "notes")).Put([]byte("k"), append(number(9), '1'))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := reopen(t, newFile(t))
			write(t, s.Writer("notes"), "k", "1")
			if err := s.disk.file.Update(change); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Writer("notes").Put(background, stream.PutRequest{Key: "k", Value: []byte("2")}); err == nil {
				t.Error("it is answered")
			}
			if got := state(s); got["k"] != "1@1" || !s.Disk().Failed {
				t.Errorf("it has %v; failed: %t", got, s.Disk().Failed)
			}
		})
	}
}
