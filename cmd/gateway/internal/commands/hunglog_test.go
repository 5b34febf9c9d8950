//go:build linux

package commands

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLogThatNobodyReads: a collector of logs that hangs, without closing the pipe, holds up neither
// requests nor the end of the process.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel() // much of its time is spent waiting
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	conf := file(t, "gateway.yaml", quick)
	c := exec.Command(os.Args[0], "serve", "--config", conf, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	c.Env, c.Stderr = append(os.Environ(), asCommand+"=1"), in
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	in.Close()
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		if _, after, ok := strings.Cut(lines.Text(), `"msg":"listening","http":"`); ok {
			address, _, _ = strings.Cut(after, `"`)
		}
	}
	for range 2000 { // many of them write a line, and nobody reads any more
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if status, body := fetch(t, http.DefaultTransport, "GET", "http://"+address+"/readyz", ""); status != http.StatusOK {
			t.Fatalf("/readyz: %d %s", status, body)
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the process: %v", err)
	}
}
