package peers

import "context"

// bare is the limit: one thread, and for each event and each subscriber only
// one write.
func bare() Peer { return bareLoop("bare loop, a write per event") }

// bareBatches is the limit for a server that puts the events of a publish into
// one write.
func bareBatches() Peer { return bareLoop("bare loop, a write per publish", "-batch") }

func bareLoop(name string, arguments ...string) Peer {
	return Peer{Name: name, Start: func(ctx context.Context, o Options) (*Server, error) {
		return startFed(ctx, o, "internal/peers/bareserver", Server{
			Request: get("/events"),
			Marker:  []byte("\nevent: upsert\n"),
		}, arguments...)
	}}
}
