package peers

import (
	"context"
	"errors"
	"io"
)

// ErrMissing is the error of Start, wrapped, if a program that the peer needs is
// not installed on this machine. The benchmark then continues without this peer.
var ErrMissing = errors.New("not installed")

// Peer is a server that can be compared.
type Peer struct {
	// Name is the name in the tables.
	Name string
	// Start starts the server and returns once it accepts connections. It returns
	// ErrMissing if it is not available here. The processes end by Stop, or are
	// killed when ctx is cancelled or the benchmark dies.
	Start func(ctx context.Context, o Options) (*Server, error)
}

// Options specify the load of a server.
type Options struct {
	// Subscribers is how many connections it must be ready for (descriptors,
	// worker_connections and the like).
	Subscribers int
	// EventBytes is the size of the data that one event will have; Backlog how
	// many events may be published ahead of the slowest subscriber, so that a
	// server that drops events beyond its buffer can get one that is large
	// enough. 0: DefaultBacklog.
	EventBytes, Backlog int
	// Resources is how many resources of ResourceBytes each the snapshot has. 0:
	// no snapshot is requested; a server without snapshots ignores it.
	Resources, ResourceBytes int
	// WorkDir is a directory for programs, configuration and logs. The
	// caller removes it.
	WorkDir string
	// Log receives the output of the processes, if it is set.
	Log io.Writer
}

// DefaultBacklog is a Backlog that the bench never exceeds by itself.
const DefaultBacklog = 1024

// Server is a started server. Its functions are for one goroutine at a time.
type Server struct {
	// Address is the host:port that subscribers connect to.
	Address string
	// Request is the request of a subscriber.
	Request []byte
	// Marker occurs once in each delivered event, and nowhere else in a stream.
	// One that begins with a line feed is found fastest.
	Marker []byte
	// Stamp precedes the time in each delivered event; nil: "at": as it was published.
	Stamp []byte
	// InFlight is how many requests may wait for their answers at the same time,
	// if the server refuses more; 0: there is no limit.
	InFlight int
	// Snapshot is the request that is answered with the loaded resources and the
	// end of the connection; nil if the server has no snapshots, or
	// Options.Resources was 0.
	Snapshot []byte
	// Several is the request of a subscriber that wants three watches in one
	// response; nil if the server does not support it.
	Several []byte
	// PIDs are the processes whose CPU and memory count: all of them, the main
	// one first.
	PIDs []int
	// Upstreams returns how many streams the server has open to its upstream, as
	// the upstream counts them; nil if it follows none.
	Upstreams func() int
	// Publish is one publish of one or more events, each a JSON object of
	// Options.EventBytes with a member "at":<unix nanoseconds>. It returns once the
	// server has accepted the events, where its back-pressure, if there is any, takes
	// effect. It retains none of the bytes. Nil: it serves snapshots only.
	Publish func(events [][]byte) error
	// Stop ends the processes and waits until they are gone.
	Stop func() error
}

// All returns every peer, the bare loop first and the gateways last, in the
// order of the tables.
func All() []Peer {
	return []Peer{
		bare(), bareBatches(), hub(), nchan(), pushpin(), r3labs(), grpcGateway(), sendfile(),
		gateway("goroutines"), gateway("shards"),
	}
}
