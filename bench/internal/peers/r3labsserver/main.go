// Command r3labsserver serves the events it reads from its standard input to
// the subscribers of a server of github.com/r3labs/sse, set up according to its
// documentation. It ends with its input.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/r3labs/sse/v2"

	"github.com/watchtide/watchtide/bench/internal/peers/feed"
)

// stream is the name of the only stream.
const stream = "events"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "r3labsserver:", err)
		os.Exit(1)
	}
}

func run() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := sse.New()
	server.AutoReplay = false // it would keep every event forever
	server.CreateStream(stream)
	mux := http.NewServeMux()
	mux.Handle("/events", server)
	go http.Serve(listener, mux)
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	return publish(server, feed.NewReader(os.Stdin, os.Stdout))
}

// publish passes on fed events. Publish waits while the server's buffer is
// full, and so does the answer.
func publish(server *sse.Server, in *feed.Reader) error {
	for {
		events, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			server.Publish(stream, &sse.Event{Data: e})
		}
		if err := in.Answer(); err != nil {
			return err
		}
	}
}
