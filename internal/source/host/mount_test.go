package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
)

// fakeMounts is a list of mounts and their usage.
type fakeMounts struct {
	mounts []disk.PartitionStat

	mu    sync.Mutex               // guards what follows
	hang  map[string]chan struct{} // by mount point; an answer comes when closed
	errs  map[string]error
	asked []string
}

func (f *fakeMounts) reader() *mountReader {
	return &mountReader{list: f.list, asker: usageAsker{usage: f.usage}}
}

func (f *fakeMounts) list(context.Context) ([]disk.PartitionStat, error) { return f.mounts, nil }

func (f *fakeMounts) usage(point string) (*disk.UsageStat, error) {
	f.mu.Lock()
	f.asked = append(f.asked, point)
	hang, err := f.hang[point], f.errs[point]
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if err != nil {
		return nil, err
	}
	return &disk.UsageStat{Total: 1000, Used: 450, Free: 450, InodesTotal: 10, InodesUsed: 3}, nil
}

// takeAsked returns how often the mounts were asked since the last call.
func (f *fakeMounts) takeAsked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.asked)
	f.asked = nil
	return n
}

func mounts(pointsAndTypes ...string) []disk.PartitionStat {
	all := make([]disk.PartitionStat, len(pointsAndTypes))
	for i, s := range pointsAndTypes {
		point, fstype, _ := strings.Cut(s, " ")
		all[i] = disk.PartitionStat{Device: "dev", Mountpoint: point, Fstype: fstype}
	}
	return all
}

const (
	goodUsage = `"total_bytes":1000,"used_bytes":450,"available_bytes":450,"used_percent":50,"total_inodes":10,"used_inodes":3}`
	noAnswer  = `"usage_error":"no answer within 500ms"}`
)

func mountItem(point, rest string) item {
	return item{point, []byte(`{"mount_point":"` + point + `","device":"dev","file_system":"ext4",` + rest)}
}

func readMounts(t *testing.T, r *mountReader) []item {
	t.Helper()
	items, err := r.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func TestMountValue(t *testing.T) {
	f := &fakeMounts{mounts: mounts("/data ext4", "/ ext4"), errs: map[string]error{"/data": syscall.EACCES}}
	f.mounts[1].Opts = []string{"ro", "relatime"}
	wantItems(t, readMounts(t, f.reader()), []item{
		mountItem("/", `"options":["ro","relatime"],`+goodUsage),
		mountItem("/data", `"usage_error":"permission denied"}`),
	})
}

func TestOnlyTheTopmostMountThatStoresSomething(t *testing.T) {
	f := &fakeMounts{mounts: mounts(
		"/proc proc", "/ ext4", "/a tmpfs", "/b ext4", "/a xfs", "/c ext4", "/c autofs", "/d overlay", "/d overlay")}
	if got := readKeys(t, f.reader()); got != "/ /a /b /d" {
		t.Errorf("mounts %s, want / /a /b /d", got)
	}
	if n := f.takeAsked(); n != 4 {
		t.Errorf("%d mounts were asked, want 4", n)
	}
}

// TestAMountThatHangs is shown without usage, delays no later poll, is not
// queried again before it answers, and then is as before.
func TestAMountThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		f := &fakeMounts{mounts: mounts("/ ext4", "/nfs ext4"), hang: map[string]chan struct{}{"/nfs": answer}}
		r := f.reader()
		good := []item{mountItem("/", goodUsage), mountItem("/nfs", goodUsage)}
		hangs := []item{mountItem("/", goodUsage), mountItem("/nfs", noAnswer)}

		for _, poll := range []struct {
			takes time.Duration
			asks  int
		}{{usageTimeout, 2}, {0, 1}, {0, 1}} {
			begin := time.Now()
			wantItems(t, readMounts(t, r), hangs)
			if took := time.Since(begin); took != poll.takes {
				t.Errorf("poll took %v, want %v", took, poll.takes)
			}
			if n := f.takeAsked(); n != poll.asks {
				t.Errorf("%d mounts were asked, want %d", n, poll.asks)
			}
		}

		close(answer)
		synctest.Wait()
		wantItems(t, readMounts(t, r), good)
		if n := f.takeAsked(); n != 2 {
			t.Errorf("%d mounts were asked, want 2: the late answer is old", n)
		}
		wantItems(t, readMounts(t, r), good)
	})
}

// TestAMountThatHangsAndGoes is not waited for when another mount replaces it.
func TestAMountThatHangsAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		f := &fakeMounts{mounts: mounts("/nfs ext4"), hang: map[string]chan struct{}{"/nfs": answer}}
		r := f.reader()
		wantItems(t, readMounts(t, r), []item{mountItem("/nfs", noAnswer)})
		there := f.mounts
		f.mounts = nil
		wantItems(t, readMounts(t, r), nil)
		f.mounts = there
		f.mu.Lock()
		f.hang = nil
		f.mu.Unlock()
		wantItems(t, readMounts(t, r), []item{mountItem("/nfs", goodUsage)})
		close(answer)
	})
}

func TestMountsThatCannotBeListed(t *testing.T) {
	broken := errors.New("no mountinfo")
	r := &mountReader{list: func(context.Context) ([]disk.PartitionStat, error) { return nil, broken }}
	if _, err := r.read(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error is %v, want %v", err, broken)
	}
}

// TestTheDiskOfThisTestIsShown looks for the mount under a file of its own.
func TestTheDiskOfThisTestIsShown(t *testing.T) {
	values := snapshotOf(t, Mounts)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for values[dir] == "" && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	fields := fieldsOf(t, values[dir])
	if total := fields["total_bytes"].(float64); total < 1<<20 {
		t.Errorf("total_bytes of %s is %.0f", dir, total)
	}
	if used := fields["used_percent"].(float64); used < 0 || used > 100 {
		t.Errorf("used_percent of %s is %v", dir, used)
	}
	for point, value := range values {
		if fieldsOf(t, value)["file_system"] == "proc" {
			t.Errorf("%s is shown: %s", point, value)
		}
	}
}

// TestTheEnvironmentDoesNotMoveTheMachine: gopsutil reads other paths if the
// environment says so.
func TestTheEnvironmentDoesNotMoveTheMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/mountinfo"); err != nil {
		t.Skip("no /proc")
	}
	t.Setenv("HOST_PROC", t.TempDir())
	t.Setenv("HOST_PROC_MOUNTINFO", t.TempDir())
	for _, collection := range []string{Processes, Interfaces, Mounts} {
		if len(snapshotOf(t, collection)) == 0 {
			t.Errorf("no %s", collection)
		}
	}
}
