package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/disk/disktest"
	"github.com/watchtide/watchtide/stream"
)

// recordedIn names the folder in which a child process of a test has a store.
const recordedIn = "WATCHTIDE_TEST_RECORD"

func init() {
	if folder := os.Getenv(recordedIn); folder != "" {
		if err := writeRecorded(filepath.Join(folder, "state", "a.db")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// recordedStep makes two writes. The second key is deleted at each third step.
func recordedStep(w stream.Writer, n int) error {
	if _, _, err := w.Put(background, stream.PutRequest{Key: "a", Value: fmt.Appendf(nil, `"%d %s"`, n, strings.Repeat("x", 500*n))}); err != nil {
		return err
	}
	disktest.Mark(fmt.Sprint("a ", n))
	if n%3 == 0 {
		if _, err := w.Delete(background, stream.DeleteRequest{Key: "b"}); err != nil {
			return err
		}
	} else if _, _, err := w.Put(background, stream.PutRequest{Key: "b", Value: fmt.Appendf(nil, `"%d"`, n)}); err != nil {
		return err
	}
	disktest.Mark(fmt.Sprint("b ", n))
	return nil
}

// writeRecorded is the child. Between two processes the file is rewritten.
func writeRecorded(path string) error {
	n := 0
	for range 3 {
		s, err := Open(Config{Path: path})
		if err != nil {
			return err
		}
		for range 4 {
			n++
			if err := recordedStep(s.Writer("notes"), n); err != nil {
				return err
			}
		}
		s.Close()
		if _, _, err := Compact(path); err != nil {
			return err
		}
	}
	return nil
}

// TestLossOfPower: whenever the power is lost, the store has each write that was answered, and goes on in its epochs.
func TestLossOfPower(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state", "a.db")
	r := disktest.Record(t, folder, recordedIn+"="+folder)
	r.Check(t, func(marks []string) error {
		if _, err := os.Lstat(path); err != nil && len(marks) > 0 {
			return err
		}
		s, err := Open(Config{Path: path})
		if err != nil {
			return err
		}
		defer s.Close()
		if why := s.disk.file.Restored(); why != "" && len(marks) > 0 {
			return fmt.Errorf("it is taken for another: %s", why)
		}
		for step := len(marks); step <= len(marks)+1; step++ {
			if hasSteps(s, step) {
				return nil
			}
		}
		return fmt.Errorf("it is at revision %d", s.revision)
	})
}

// hasSteps reports whether the store has what there is after so many writes.
func hasSteps(s *Store, writes int) bool {
	w, _ := s.open("notes")
	state := w.log.Snapshot()
	value := func(key string) string {
		r, _ := state.Get(key)
		text, _, _ := strings.Cut(strings.Trim(string(r.Value), `"`), " ")
		return text
	}
	wantA, wantB := "", ""
	if n := (writes + 1) / 2; n > 0 {
		wantA = fmt.Sprint(n)
	}
	if n := writes / 2; n%3 != 0 {
		wantB = fmt.Sprint(n)
	}
	return value("a") == wantA && value("b") == wantB
}
