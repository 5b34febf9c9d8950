package host

import (
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// The parts of a command line and an environment that must never show. The secret is not
// a number: the memory of any other process can have its digits.
const (
	secretTitle    = "password=title-hunter2"
	secretArgument = "--password=argument-hunter2"
	secretVariable = "PASSWORD=variable-hunter2"
	secret         = "hunter2"
)

// startChild starts this test binary as a process that waits, with secrets
// wherever a process can have them. The name of the binary, host.test, is
// 15 bytes long: some tools suspect that such a name is truncated, and take the
// rest from the command line.
func startChild(t *testing.T) (pid int) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Args = []string{"host.test " + secretTitle, secretArgument}
	// The race detector lets a process wait a second before it ends.
	cmd.Env = append(os.Environ(), asChild+"=1", secretVariable, "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	// Until then the kernel may still be about to record its command line.
	if _, err := io.ReadFull(stdout, make([]byte, len("up"))); err != nil {
		t.Fatalf("child: %v", err)
	}
	return cmd.Process.Pid
}

func TestThisProcessIsShown(t *testing.T) {
	fields := fieldsOf(t, snapshotOf(t, Processes)[strconv.Itoa(os.Getpid())])
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"pid": float64(os.Getpid()), "parent_pid": float64(os.Getppid()),
		"name": "host.test", "user": me.Username, "cpu_percent": 0.0,
	} {
		if fields[name] != want {
			t.Errorf("%s is %v, want %v", name, fields[name], want)
		}
	}
	if state := fields["state"]; state != "running" && state != "sleep" {
		t.Errorf("state is %v", state) // its first thread's, which may wait for this one
	}
	if rss := fields["resident_bytes"].(float64); rss < 1<<20 || rss > 1<<32 {
		t.Errorf("resident_bytes is %.0f", rss)
	}
	start, err := time.Parse(time.RFC3339, fields["start_time"].(string))
	if age := time.Since(start); err != nil || age < 0 || age > time.Hour {
		t.Errorf("start_time is %v, %v ago (error: %v)", fields["start_time"], age, err)
	}
	if len(fields) != 8 {
		t.Errorf("%d fields, want 8: %v", len(fields), fields)
	}
}

func TestStartTimeIsRight(t *testing.T) {
	before := time.Now()
	pid := startChild(t)
	after := time.Now()
	fields := fieldsOf(t, snapshotOf(t, Processes)[strconv.Itoa(pid)])
	start, err := time.Parse(time.RFC3339, fields["start_time"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if start.Before(before.Add(-3*tick)) || start.After(after.Add(3*tick)) {
		t.Errorf("start_time is %v, want from %v to %v", start, before.UTC(), after.UTC())
	}
}

// TestCommandLineAndEnvironmentAreNeverShown looks for a child's secrets in
// everything that is sent about all processes.
func TestCommandLineAndEnvironmentAreNeverShown(t *testing.T) {
	pid := strconv.Itoa(startChild(t))
	for _, file := range []string{"cmdline", "environ"} {
		raw, err := os.ReadFile("/proc/" + pid + "/" + file)
		if err != nil || !strings.Contains(string(raw), secret) {
			t.Fatalf("the child's %s holds no secret (error: %v): %q", file, err, raw)
		}
	}
	values := snapshotOf(t, Processes)
	if name := fieldsOf(t, values[pid])["name"]; name != "host.test" {
		t.Errorf("name is %q, want host.test", name)
	}
	for pid, value := range values {
		if strings.Contains(value, secret) {
			t.Errorf("process %s: %s", pid, value)
		}
	}
}

func TestKernelName(t *testing.T) {
	for _, c := range []struct {
		comm  string
		flags uint
		want  string
	}{
		{"bash", 0, "bash"},
		{"kworker/0:1-x", 0, "kworker/0:1-x"}, // a program may take any name
		{"ksoftirqd/0", flagKernel, "ksoftirqd/0"},
		{"jbd2/vda-8", flagKernel, "jbd2/vda-8"},
		{"kworker/0:1", flagKernel, "kworker/0:1"},
		{"kworker/0:1H-kblockd", flagKernel, "kworker/0:1H"},
		{"kworker/u8:2+events_unbound", flagKernel, "kworker/u8:2"},
		{"kworker/R-mm_percpu_wq", flagKernel, "kworker/R-mm_percpu_wq"},
	} {
		if got := kernelName(procfs.ProcStat{Comm: c.comm, Flags: c.flags}); got != c.want {
			t.Errorf("name of %q is %q, want %q", c.comm, got, c.want)
		}
	}
}

func TestBootClockIgnoresNoise(t *testing.T) {
	measured := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	clock := bootClock{now: func() (time.Time, error) { return measured, nil }}
	for _, step := range []struct {
		by   time.Duration
		keep bool
	}{{0, false}, {999 * time.Millisecond, true}, {-999 * time.Millisecond, true}, {time.Minute, false}, {-time.Hour, false}} {
		kept := clock.at
		measured = measured.Add(step.by)
		if err := clock.set(); err != nil {
			t.Fatal(err)
		}
		if (clock.at == kept) != step.keep {
			t.Errorf("step by %v: boot time went from %v to %v", step.by, kept, clock.at)
		}
	}
}
