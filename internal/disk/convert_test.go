package disk

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestConversion: a file of an older format is converted once. The converted file does not count as a copy.
func TestConversion(t *testing.T) {
	path := newPath(t)
	f := mustOpen(t, path)
	mustPut(t, f, 7, map[string]string{"a": "1", "b": "2"})
	_ = f.Close()
	c, calls := config(path), 0
	c.Format = 4
	c.Convert = func(format int, from *Tx, update func(func(*Tx) error) error) error {
		calls++
		if format != 3 {
			t.Errorf("converted from format %d, want 3", format)
		}
		return from.Bucket(things).Each(func(key, value []byte) error {
			return update(func(tx *Tx) error { // a transaction for each
				b, err := tx.MakeBucket(things)
				if err != nil {
					return err
				}
				return b.Put(key, append([]byte("new "), value...))
			})
		})
	}
	for range 2 {
		f, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		got := mustRead(t, f)
		if got.sequence != 7 || got.values["a"] != "new 1" || got.values["b"] != "new 2" || f.Format() != 4 || f.Restored() != "" {
			t.Errorf("%v at %d, format %d; a copy: %q", got.values, got.sequence, f.Format(), f.Restored())
		}
		_ = f.Close()
	}
	if calls != 1 {
		t.Errorf("converted %d times", calls)
	}
	if _, err := Open(config(path)); err == nil || !strings.Contains(err.Error(), "has format 4") {
		t.Errorf("the version before: error %v", err)
	}
}

// TestAConversionThatFails leaves the file as it is.
func TestAConversionThatFails(t *testing.T) {
	path := newPath(t)
	f := mustOpen(t, path)
	mustPut(t, f, 7, map[string]string{"a": "1"})
	_ = f.Close()
	c, refused := config(path), errors.New("it makes no sense")
	c.Format = 4
	c.Convert = func(int, *Tx, func(func(*Tx) error) error) error { return refused }
	if _, err := Open(c); !errors.Is(err, refused) || !strings.Contains(err.Error(), "converting "+path) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Lstat(path + unfinished); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new file is left: %v", err)
	}
	again := mustOpen(t, path)
	if got := mustRead(t, again); got.values["a"] != "1" || got.sequence != 7 || again.Format() != 3 || again.Restored() != "" {
		t.Errorf("%v at %d, format %d; a copy: %q", got.values, got.sequence, again.Format(), again.Restored())
	}
}
