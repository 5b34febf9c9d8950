package files

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

func TestNewRefuses(t *testing.T) {
	for want, c := range map[string]Config{
		`dir "": want the name of a directory`:  {},
		`max_value_bytes "-1": want at least 1`: {Dir: "x", MaxValueBytes: -1},
		`max_bytes "-1": want at least 1`:       {Dir: "x", MaxBytes: -1},
		`rescan "999ms": want at least 1s`:      {Dir: "x", Rescan: 999 * time.Millisecond},
	} {
		_, err := New(c)
		if !errors.As(err, new(*stream.InvalidError)) || err.Error() != want {
			t.Errorf("%+v: error %v, want %s", c, err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	s, err := New(Config{Dir: "x"})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("x")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Dir: dir, MaxValueBytes: DefaultMaxValueBytes, MaxBytes: DefaultMaxBytes, Rescan: DefaultRescan}
	if s.config != want {
		t.Errorf("got %+v, want %+v", s.config, want)
	}
	other, err := New(Config{Dir: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if s.epoch == other.epoch || stream.CanonicalEpoch(s.epoch) != s.epoch {
		t.Errorf("epochs %q and %q, want two that can stand in a position", s.epoch, other.epoch)
	}
}
