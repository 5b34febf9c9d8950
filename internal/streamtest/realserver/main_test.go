package realserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// asServer is set where this test binary is to be the server.
const asServer = "REALSERVER_TEST"

// TestMain is both: the tests, and the server that they start.
func TestMain(m *testing.M) {
	if mode := os.Getenv(asServer); mode != "" {
		serve(mode)
		return
	}
	goleak.VerifyTestMain(Main(m))
}

// serve answers every connection with its process id. Its faults are modes.
func serve(mode string) {
	address := os.Args[1]
	fmt.Fprintln(os.Stderr, "mode", mode, "args", strings.Join(os.Args[1:], " "))
	if mode == "broken" {
		os.Exit(3)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if mode != "mute" {
		fmt.Printf("a line before\nready %s data=%s more\nready for nothing\n", l.Addr(), address)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	go answer(l)
	<-ctx.Done()
}

func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(c, os.Getpid())
		c.Close()
	}
}
