// Command etcd is the real etcd server, as tests start it: on a local port,
// and with the options that they need to break it.
//
// It prints "ready <host:port>" once it serves clients, and ends at SIGTERM or
// when its standard input ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	var o options
	o.define(flag.CommandLine)
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

// run serves until the process is asked to end.
func run(o *options) error {
	if o.data == "" {
		dir, err := os.MkdirTemp("", "etcd-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.data = dir
	}
	if err := o.restore(); err != nil {
		return err
	}
	c, err := o.config()
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer server.Close()
	return serve(server)
}

func serve(server *embed.Etcd) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	ready := server.Server.ReadyNotify()
	for {
		select {
		case <-ready:
			fmt.Println("ready", server.Clients[0].Addr())
			ready = nil
		case err := <-server.Err():
			return err
		case <-server.Server.StopNotify():
			return nil // it was removed from its cluster
		case <-ctx.Done():
			return nil
		}
	}
}
