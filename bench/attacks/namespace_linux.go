package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// enterNamespace moves the calling goroutine, with a thread of its own, into a new network
// namespace, whose only device is lo with a further address. Programs that the goroutine
// starts are in it too; the function that it returns dials in it, from any goroutine. The
// thread ends with the goroutine.
func enterNamespace(ctx context.Context, address string) (process.Dial, error) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoNamespace, err)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", address + "/32", "dev", "lo"}} {
		if said, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: ip %v: %w: %s", errNoNamespace, args, err, said)
		}
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialIn(ctx, namespace, network, address)
	}, nil
}

// dialIn dials an IP address in a namespace.
func dialIn(ctx context.Context, namespace *os.File, network, address string) (connection net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		connection, err = new(net.Dialer).DialContext(ctx, network, address)
	}()
	<-done
	return connection, err
}
