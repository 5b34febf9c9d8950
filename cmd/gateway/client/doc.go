// Package client follows and reads the watches of a gateway over HTTP.
//
// Follow is one stream that survives: it reconnects with a back-off, resumes
// from the newest id, obeys retry and goodbye, and notices a connection that
// has gone quiet. Each connection is a stream of sseclient. Replica holds what a
// stream says of one watch.
package client

import "github.com/watchtide/watchtide/stream/sseclient"

// What a gateway says is read in the same way here and by a gateway that follows
// another.
type (
	// Event is one event of a stream.
	Event = sseclient.Event
	// Resource is one member of a watch as it stands in JSON.
	Resource = sseclient.Resource
	// HelloWatch is one watch of a stream.
	HelloWatch = sseclient.HelloWatch
	// Problem is a refusal by the server.
	Problem = sseclient.Problem
)
