// Command nats is a real NATS server with JetStream, for tests that want to kill
// and pause it.
//
// It prints "ready <address>", and ends at SIGTERM or when its standard input
// ends. JetStream's data is in the directory of -data, and is found again there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

var (
	listen = flag.String("listen", "127.0.0.1:0", "address to serve on")
	data   = flag.String("data", "", "folder of JetStream; empty: one that is removed at the end")
	config = flag.String("config", "", "file with the configuration of the server, for users, permissions and TLS")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	if *data == "" {
		dir, err := os.MkdirTemp("", "nats")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		*data = dir
	}
	options, err := options()
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("not ready for connections within a minute")
	}
	fmt.Println("ready", s.Addr())
	<-ctx.Done()
	return nil
}

// options are those of the file, if there is one, overridden by those of the flags.
func options() (*server.Options, error) {
	host, port, err := net.SplitHostPort(*listen)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	o := &server.Options{}
	if *config != "" {
		if o, err = server.ProcessConfigFile(*config); err != nil {
			return nil, err
		}
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	o.Host, o.Port, o.StoreDir = host, number, *data
	o.JetStream, o.NoSigs = true, true
	return o, nil
}
