package host

import (
	"context"
	"errors"
	"io/fs"
	"os/user"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fakeTable is a process table. A process with an error cannot be read.
type fakeTable struct {
	processes map[int]processStat
	errs      map[int]error
}

func (f *fakeTable) pids(context.Context) ([]int, error) {
	var pids []int
	for pid := range f.processes {
		pids = append(pids, pid)
	}
	for pid := range f.errs {
		pids = append(pids, pid)
	}
	return pids, nil
}

func (f *fakeTable) stat(_ context.Context, pid int) (processStat, error) {
	s := f.processes[pid]
	s.pid = pid
	return s, f.errs[pid]
}

func readKeys(t *testing.T, r reader) string {
	t.Helper()
	items, err := r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, i := range items {
		keys = append(keys, i.key)
	}
	return strings.Join(keys, " ")
}

func TestProcessValue(t *testing.T) {
	table := &fakeTable{processes: map[int]processStat{
		42: {
			parent: 1, name: "a <b> \xff", state: "sleep", user: "nobody", resident: 1 << 53,
			start: time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.FixedZone("", 3600)),
		},
	}}
	items, err := (&processReader{table: table}).read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"pid":42,"parent_pid":1,"name":"a <b> \ufffd","state":"sleep","user":"nobody",` +
		`"cpu_percent":0,"resident_bytes":9007199254740992,"start_time":"2026-03-04T04:06:07.89Z"}`
	if got := string(items[0].value); got != want || items[0].key != "42" {
		t.Errorf("%s:\n got %s\nwant %s", items[0].key, got, want)
	}
}

func TestProcessesThatVanishAreSkipped(t *testing.T) {
	r := &processReader{table: &fakeTable{
		processes: map[int]processStat{100: {}, 9: {}, 1: {}},
		errs:      map[int]error{5: fs.ErrNotExist, 6: syscall.ESRCH, 7: fs.ErrPermission, 8: errors.New("garbage")},
	}}
	if got := readKeys(t, r); got != "1 9 100" {
		t.Errorf("processes %s, want 1 9 100", got)
	}
}

// TestOutOfFilesIsNotTheEndOfAllProcesses: a process that is unreadable
// because of this program's own limits must not be reported as gone.
func TestOutOfFilesIsNotTheEndOfAllProcesses(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		wrapped := &fs.PathError{Op: "open", Path: "/proc/5/stat", Err: err}
		r := &processReader{table: &fakeTable{
			processes: map[int]processStat{1: {}},
			errs:      map[int]error{5: wrapped},
		}}
		if _, got := r.read(t.Context()); !errors.Is(got, err) {
			t.Errorf("error is %v, want %v", got, err)
		}
	}
	r := &processReader{table: &fakeTable{errs: map[int]error{5: fs.ErrPermission}}}
	if _, err := r.read(t.Context()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error is %v where no process at all can be read", err)
	}
}

func TestALongReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &processReader{table: &fakeTable{processes: map[int]processStat{1: {}}}}
	if _, err := r.read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

// use is one measurement: the CPU time of process 1 after some time.
type use struct {
	after   time.Duration
	cpuTime time.Duration
	want    percent
}

func TestCPUPercent(t *testing.T) {
	for name, uses := range map[string][]use{
		"idle":                    {{0, time.Hour, 0}, {2 * time.Second, time.Hour, 0}},
		"half a core":             {{0, time.Hour, 0}, {2 * time.Second, time.Hour + time.Second, 50}},
		"two cores and a half":    {{0, 0, 0}, {2 * time.Second, 5 * time.Second, 250}},
		"each poll for itself":    {{0, 0, 0}, {time.Second, time.Second, 100}, {time.Second, time.Second, 0}},
		"one tick":                {{0, 0, 0}, {2 * time.Second, 10 * time.Millisecond, 0.5}},
		"one tick, late poll":     {{0, 0, 0}, {2003 * time.Millisecond, 10 * time.Millisecond, 0.5}},
		"going back":              {{0, time.Second, 0}, {time.Second, 0, 0}},
		"too soon to tell":        {{0, 0, 0}, {time.Second, time.Second / 2, 50}, {time.Millisecond, time.Second, 50}},
		"a postponed measurement": {{0, 0, 0}, {time.Millisecond, time.Second, 0}, {1999 * time.Millisecond, time.Second, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			var m cpuMeter
			now := time.Now()
			for _, u := range uses {
				now = now.Add(u.after)
				if got := m.measure(processStat{pid: 1, cpuTime: u.cpuTime}, now); got != u.want {
					t.Errorf("%v after %v is %v %%, want %v", u.cpuTime, u.after, got, u.want)
				}
			}
		})
	}
}

// TestCPUOfAnotherProcessWithTheSameID does not count the first one's.
func TestCPUOfAnotherProcessWithTheSameID(t *testing.T) {
	var m cpuMeter
	now := time.Now()
	m.measure(processStat{pid: 1, start: now, cpuTime: time.Second}, now)
	later := now.Add(DefaultInterval)
	if got := m.measure(processStat{pid: 1, start: later, cpuTime: 2 * time.Second}, later); got != 0 {
		t.Errorf("new process with an old id: %v %%, want 0", got)
	}
}

func TestVanishedProcessesAreForgotten(t *testing.T) {
	table := &fakeTable{processes: map[int]processStat{1: {}, 2: {}, 3: {}}}
	r := &processReader{table: table}
	readKeys(t, r)
	delete(table.processes, 2)
	table.errs = map[int]error{3: fs.ErrPermission} // it exists, and may become visible again
	readKeys(t, r)
	if _, ok := r.meter.samples[2]; ok || len(r.meter.samples) != 2 {
		t.Errorf("samples of %v, want those of 1 and 3", r.meter.samples)
	}
}

func TestUserNamesAreLookedUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		u := &userNames{lookUp: func(uid string) (*user.User, error) {
			asked++
			if uid != "7" {
				return nil, user.UnknownUserError(uid)
			}
			return &user.User{Username: "seven"}, nil
		}}
		for range 3 {
			if a, b := u.name(7), u.name(8); a != "seven" || b != "8" {
				t.Errorf("names %q and %q, want seven and 8", a, b)
			}
		}
		if asked != 2 {
			t.Errorf("%d look-ups, want 2", asked)
		}
		time.Sleep(userNameAge + 1)
		u.name(7)
		if asked != 3 {
			t.Errorf("%d look-ups after %v, want 3", asked, userNameAge)
		}
	})
}
