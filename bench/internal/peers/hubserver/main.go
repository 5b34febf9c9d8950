// Command hubserver is a typical handwritten event server: a channel for each
// subscriber, and a handler that writes and flushes each event. A full channel
// holds up the publisher, so that nothing is lost. It ends with its input.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/watchtide/watchtide/bench/internal/peers/feed"
)

func main() {
	resources := flag.Int("resources", 0, "how many resources the snapshot has")
	size := flag.Int("bytes", 300, "the size of each")
	flag.Parse()
	if err := run(*resources, *size); err != nil {
		fmt.Fprintln(os.Stderr, "hubserver:", err)
		os.Exit(1)
	}
}

func run(resources, size int) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := newHub()
	http.Handle("/events", h)
	http.Handle("/snapshot", snapshot(resources, size))
	go http.Serve(listener, nil)
	fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
	return h.publish(feed.NewReader(os.Stdin, os.Stdout))
}

// encoded is a snapshot whose events only have to be written, one by one.
type encoded [][]byte

func snapshot(resources, size int) encoded {
	out := make(encoded, resources)
	for i := range out {
		value := fmt.Sprintf(`{"key":"resource-%07d","pad":"`, i)
		value += strings.Repeat("x", max(0, size-len(value)-2)) + `"}`
		out[i] = frame([]byte(value))
	}
	return out
}

func (e encoded) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range e {
		if _, err := w.Write(event); err != nil {
			return
		}
	}
}

func frame(data []byte) []byte {
	return append(append([]byte("event: upsert\ndata: "), data...), "\n\n"...)
}

// publish passes on fed events, and answers when every subscriber has room for
// them.
func (h *hub) publish(in *feed.Reader) error {
	for {
		events, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			h.broadcast(frame(e))
		}
		if err := in.Answer(); err != nil {
			return err
		}
	}
}
