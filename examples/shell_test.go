//go:build servers

package examples_test

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestShellLoop: the script prints what changes, and after a restart what has changed meanwhile.
func TestShellLoop(t *testing.T) {
	needs(t, "curl")
	e := copied(t, "shell")
	e.serve()
	e.write("PUT", "notes", "milk", `"two litres"`)

	lines, stop := e.loop()
	await(t, lines, `{"type":"upsert","watch":"notes","key":"milk","revision":"1","value":"two litres"}`)
	e.write("PUT", "notes", "bread", `1`)
	await(t, lines, `"key":"bread","revision":"2"`)
	e.write("PUT", "notes", "salt", `1`) // its position is not kept for sure, that of bread is
	await(t, lines, `"key":"salt"`)
	stop()

	e.write("DELETE", "notes", "milk", "")
	lines, _ = e.loop()
	before, deleted := await(t, lines, `"type":"delete"`)
	if deleted != `{"type":"delete","watch":"notes","key":"milk","revision":"4"}` {
		t.Errorf("printed %s", deleted)
	}
	for _, line := range before {
		if !strings.Contains(line, `"key":"salt"`) {
			t.Errorf("printed %s again after the restart", line)
		}
	}
}

// loop starts the script in a process group of its own; stop ends it.
func (e *example) loop() (lines *bufio.Scanner, stop func()) {
	e.t.Helper()
	cmd := e.command("./follow.sh", "notes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	kill := func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	watchdog := time.AfterFunc(patience, kill)
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		watchdog.Stop()
		kill()
		if _, killed := cmd.Wait().(*exec.ExitError); !killed {
			e.t.Error("the script has ended by itself")
		}
	}
	e.t.Cleanup(stop)
	return bufio.NewScanner(out), stop
}
