package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets the test binary run the clients, like the command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-clients" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// TestProfiles exist after loads that are counted to the end.
func TestProfiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load generator runs on Linux only")
	}
	dir := t.TempDir()
	o := options{subscribers: 20, commits: 5, interval: time.Millisecond, storms: 2, snapshots: 3, resources: 100, dir: dir}
	if err := profileAll(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"live.cpu", "live.allocs", "snapshots.cpu", "snapshots.allocs"} {
		if info, err := os.Stat(filepath.Join(dir, name+".pprof")); err != nil || info.Size() == 0 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 4 {
		t.Errorf("%v, %v: want four files", files, err)
	}
}

func TestUnknownClients(t *testing.T) {
	if err := runClients("none", "", options{}); err == nil {
		t.Error("no error")
	}
}
