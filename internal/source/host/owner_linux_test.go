package host

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/procfs"
)

// TestOwner polls every two seconds and checks how often a process's user is read.
func TestOwner(t *testing.T) {
	for name, c := range map[string]struct {
		age   time.Duration // at the first poll
		polls int
		want  int
	}{
		"old, within a minute":     {time.Hour, 30, 1},
		"old, after a minute":      {time.Hour, 31, 2},
		"young":                    {0, 30, 30},
		"young and then old":       {0, 60, 31},
		"just old enough":          {ownerAge, 30, 1},
		"not quite old enough yet": {ownerAge - 1, 30, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				owners := newOwnerCache()
				owners.read = func(procfs.Proc) (uint64, error) { asked++; return 7, nil }
				start := time.Now().Add(-c.age)
				for range c.polls {
					if uid, err := owners.uid(procfs.Proc{PID: 1}, start); uid != 7 || err != nil {
						t.Fatalf("user is %d, error: %v", uid, err)
					}
					time.Sleep(DefaultInterval)
				}
				if asked != c.want {
					t.Errorf("asked %d times, want %d", asked, c.want)
				}
			})
		})
	}
}

func TestOwnerOfAnotherProcessWithTheSameID(t *testing.T) {
	owners := newOwnerCache()
	uid, failure := uint64(7), error(nil)
	owners.read = func(procfs.Proc) (uint64, error) { return uid, failure }
	p, start := procfs.Proc{PID: 1}, time.Now().Add(-time.Hour)
	ask := func(want uint64) {
		t.Helper()
		if got, err := owners.uid(p, start); got != want || !errors.Is(err, failure) {
			t.Errorf("user is %d, error: %v; want %d, error: %v", got, err, want, failure)
		}
	}
	ask(7)
	uid = 8
	ask(7)
	start = start.Add(time.Minute)
	ask(8)
	owners.forgetOthers(map[int]procfs.Proc{1: p})
	uid = 9
	ask(8)
	owners.forgetOthers(nil)
	ask(9)
	owners.forgetOthers(nil)
	failure = errors.New("gone")
	ask(0)
	failure = nil
	ask(9)
}
