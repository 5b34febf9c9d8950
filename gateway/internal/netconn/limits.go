package netconn

import "time"

// Limits of a connection that HTTP and gRPC share.
const (
	// ReadHeaderTimeout ends a connection whose request head does not arrive.
	ReadHeaderTimeout = 10 * time.Second
	// IdleTimeout ends a connection that waits between two requests.
	IdleTimeout = 2 * time.Minute
	// MaxHeaderBytes bounds a request head; a full set of positions is 1 KiB.
	MaxHeaderBytes = 32 << 10
	// MaxStreams is how many requests one HTTP/2 connection, and how many calls one
	// gRPC connection, may have open.
	MaxStreams = 100
	// PingAfter is the silence after which HTTP/2 and gRPC connections are pinged.
	PingAfter = 30 * time.Second
	// Linger is how long a connection whose stream has ended is kept open for its
	// client to read the rest.
	Linger = 2 * time.Second
)
