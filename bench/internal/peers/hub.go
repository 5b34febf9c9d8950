package peers

import (
	"context"
	"strconv"
)

// hub is a handwritten server: net/http, a channel for each subscriber, a
// flush after each event.
func hub() Peer {
	return Peer{Name: "net/http hub", Start: func(ctx context.Context, o Options) (*Server, error) {
		s := Server{Request: get("/events"), Marker: []byte("\ndata: ")}
		if o.Resources > 0 {
			s.Snapshot = getAll("/snapshot")
		}
		return startFed(ctx, o, "internal/peers/hubserver", s,
			"-resources", strconv.Itoa(o.Resources), "-bytes", strconv.Itoa(o.ResourceBytes))
	}}
}

// getAll is a request for a path, whose answer ends the connection.
func getAll(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}
