package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// writtenByChild names the file that a child process of a test writes to.
const writtenByChild = "WATCHTIDE_TEST_WRITE"

// killedWriters is how many writers the child has. Each counts up in a resource of its own, which it
// deletes at each tenth number.
const killedWriters = 8

// writeUntilKilled is the child. It says what it is about to write, and what was answered.
func writeUntilKilled(path string) {
	s, err := Open(Config{Path: path})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	w := s.Writer("notes")
	var all sync.WaitGroup
	for i := range killedWriters {
		key := fmt.Sprint("k", i)
		first := 1
		if r, ok := s.find("notes").log.Snapshot().Get(key); ok {
			_, _ = fmt.Sscanf(string(r.Value), `"%d`, &first)
		}
		all.Go(func() {
			for n := first; ; n++ {
				fmt.Println("try", key, n)
				if err := count(w, key, n); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				fmt.Println("done", key, n)
			}
		})
	}
	all.Wait()
}

func count(w stream.Writer, key string, n int) error {
	if n%10 == 0 {
		_, err := w.Delete(background, stream.DeleteRequest{Key: key})
		return err
	}
	value := fmt.Sprintf(`"%d %s"`, n, strings.Repeat("x", n%7*500))
	_, _, err := w.Put(background, stream.PutRequest{Key: key, Value: []byte(value)})
	return err
}

// TestKill: a process that is killed at any moment has lost nothing that was answered, has nothing that
// was not asked for, and has the same epoch.
func TestKill(t *testing.T) {
	path := newFile(t)
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	epoch, newest := "", uint64(0)
	for round := range rounds {
		tried, done := killedAfter(t, path, 20+rand.IntN(400))
		s, err := Open(Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		w := s.find("notes")
		if w == nil {
			t.Fatal("the watch is gone")
		}
		v := w.log.Snapshot()
		for i := range killedWriters {
			checkCounted(t, fmt.Sprint("k", i), v.Get, tried, done)
		}
		if epoch != "" && v.Epoch() != epoch || v.Revision() < newest {
			t.Errorf("round %d: epoch %s at %d, it was %s at %d", round, v.Epoch(), v.Revision(), epoch, newest)
		}
		epoch, newest = v.Epoch(), v.Revision()
		s.Close()
	}
}

// killedAfter runs the child until so many writes were answered, and returns the last number of each
// resource that was asked for, and that was answered.
func killedAfter(t *testing.T, path string, answers int) (tried, done map[string]int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), writtenByChild+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	tried, done = map[string]int{}, map[string]int{}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); {
		var what, key string
		var number int
		if _, err := fmt.Sscan(lines.Text(), &what, &key, &number); err != nil {
			t.Fatalf("the child says %q", lines.Text())
		}
		if what == "try" {
			tried[key] = number
			continue
		}
		done[key] = number
		if n++; n == answers {
			_ = child.Process.Kill()
		}
	}
	_ = child.Wait()
	return tried, done
}

func checkCounted(t *testing.T, key string, get func(string) (stream.Resource, bool), tried, done map[string]int) {
	t.Helper()
	got, r := 0, stream.Resource{}
	var exists bool
	if r, exists = get(key); exists {
		if _, err := fmt.Sscanf(string(r.Value), `"%d`, &got); err != nil {
			t.Fatalf("%s has %s", key, r.Value)
		}
	}
	switch {
	case done[key] == tried[key] && exists && got != done[key], exists && (got < done[key] || got > tried[key]) && tried[key] > 0:
		t.Errorf("%s is at %d: %d was answered, %d was asked for", key, got, done[key], tried[key])
	case !exists && done[key]%10 != 0 && tried[key]%10 != 0:
		t.Errorf("%s is missing: %d was answered, %d was asked for", key, done[key], tried[key])
	}
}
