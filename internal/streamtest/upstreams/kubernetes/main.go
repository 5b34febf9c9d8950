// Command kubernetes runs the API server of custom resources, that of
// k8s.io/apiextensions-apiserver, with an etcd of its own, for the tests of a
// source that follows Kubernetes. It is the code that serves custom resources in
// every cluster. It has no core API: no pods, and no namespaces, although
// namespaced resources may be in any namespace.
//
// It prints "ready <address> <file with its certificate>"; the file is in the
// directory certificates of the data directory. Clients authenticate with a
// bearer token: see [access].
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// settings are the flags. Static after main has read them.
type settings struct {
	listen   string
	data     string
	features string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("kubernetes: ")
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:0", "`address` to serve HTTPS on")
	flag.StringVar(&s.data, "data", "", "`folder` of etcd's data, the certificate and the file tokens; default: one that is removed at the end")
	flag.StringVar(&s.features, "features", "", "feature gates, as WatchList=false")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatal("want flags and no arguments")
	}
	if err := run(s); err != nil {
		log.Fatal(err)
	}
}

func run(s settings) error {
	if s.data == "" {
		dir, err := os.MkdirTemp("", "kubernetes-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.data = dir
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	storage, err := startEtcd(filepath.Join(s.data, "etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer storage.Close()
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	server, err := newServer(s, listener, storage.Clients[0].Addr())
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	return server.run(ctx, func() {
		fmt.Println("ready", listener.Addr(), filepath.Join(s.data, "certificates", certificate+".crt"))
	})
}

// startEtcd returns once etcd serves. Nothing is flushed to the disk, since
// killing the process leaves the system's cache intact.
func startEtcd(dir string) (*embed.Etcd, error) {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = dir, "error", true
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.ListenPeerUrls = anywhere, anywhere
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, err
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("not ready after a minute")
	}
}
