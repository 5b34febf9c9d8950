package peers

import "context"

// r3labs is the server of github.com/r3labs/sse: a goroutine for each stream that
// fills a channel for each subscriber, whose handler flushes every event.
func r3labs() Peer {
	return Peer{Name: "r3labs/sse", Start: func(ctx context.Context, o Options) (*Server, error) {
		return startFed(ctx, o, "internal/peers/r3labsserver", Server{
			Request: get("/events?stream=events"),
			Marker:  []byte("\ndata: "),
		})
	}}
}
