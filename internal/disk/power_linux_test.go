package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/disk/disktest"
)

// recordedIn names the folder in which a child process of a test makes a file.
const recordedIn = "WATCHTIDE_TEST_RECORD"

func init() {
	if folder := os.Getenv(recordedIn); folder != "" {
		writeRecorded(folder)
	}
}

// lastingPath is the file. Its folder does not exist at first.
func lastingPath(folder string) string { return filepath.Join(folder, "state", "a.db") }

// lastingConfig converts a file of format 3, if format is newer.
func lastingConfig(folder string, format int) Config {
	c := config(lastingPath(folder))
	c.Format = format
	c.Convert = func(_ int, from *Tx, update func(func(*Tx) error) error) error {
		if from.Bucket(things) == nil {
			return nil
		}
		return from.Bucket(things).Each(func(key, value []byte) error {
			return update(func(tx *Tx) error {
				b, err := tx.MakeBucket(things)
				if err != nil {
					return err
				}
				return b.Put(key, value)
			})
		})
	}
	return c
}

// valuesAt are the values after so many transactions: each writes all of three keys, and one that it adds.
func valuesAt(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("key", i)] = strings.Repeat("x", 1+100*i)
	}
	if n > 0 {
		for _, key := range []string{"a", "b", "c"} {
			all[key] = strings.Repeat(fmt.Sprint(n, ","), 300)
		}
	}
	return all
}

// writeRecorded is the child: it makes a file, writes, rewrites it, opens it again, and converts it. It says after each
// transaction how many there are.
func writeRecorded(folder string) {
	n := 0
	steps := func(f *File, err error, fn func(*File) error) {
		for range 4 {
			if n++; err == nil {
				err = put(f, uint64(n), valuesAt(n))
			}
			if err == nil {
				disktest.Mark(fmt.Sprint(n))
			}
		}
		if err == nil {
			err = fn(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	f, err := Open(lastingConfig(folder, 3))
	steps(f, err, (*File).Compact)
	steps(f, nil, (*File).Close)
	f, err = Open(lastingConfig(folder, 3))
	steps(f, err, (*File).Close)
	f, err = Open(lastingConfig(folder, 4))
	steps(f, err, func(*File) error { return nil }) // it is killed
	os.Exit(0)
}

// checkLasting returns what is wrong with what is left; nil: the file is the one that was there, with each transaction
// that was answered, and at most the one after them.
func checkLasting(folder string, answered int) error {
	if _, err := os.Lstat(lastingPath(folder)); err != nil && answered > 0 {
		return err
	}
	f, err := Open(lastingConfig(folder, 4))
	if err != nil {
		return err
	}
	defer f.Close()
	if why := f.Restored(); why != "" && answered > 0 {
		return fmt.Errorf("it is taken for another: %s", why)
	}
	got, err := read(f)
	if err != nil {
		return err
	}
	for n := answered; n <= answered+1; n++ {
		if got.equal(content{uint64(n), valuesAt(n)}) {
			return nil
		}
	}
	return fmt.Errorf("it ends at transaction %d, with %d values", got.sequence, len(got.values))
}

// TestLossOfPower: whenever the power is lost, everything that was answered is there: while a file and its folder are
// made, between transactions, while the file is rewritten, opened again and converted. A disk has of what was not
// synced any sectors, and of the names in a folder the first ones.
func TestLossOfPower(t *testing.T) {
	folder := t.TempDir()
	r := disktest.Record(t, folder, recordedIn+"="+folder)
	r.Check(t, func(marks []string) error { return checkLasting(folder, len(marks)) })
}
