// Package client follows and reads the watches of a gateway over HTTP.
//
// Follow is one stream that survives: it reconnects with a back-off, resumes
// from the newest id, obeys retry and goodbye, and notices a silent connection.
// Each connection is a stream of sseclient. Replica holds the state of one watch
// as a stream reports it.
package client

import "github.com/watchtide/watchtide/stream/sseclient"

// These are parsed in the same way here and by a gateway that follows another.
type (
	// Event is one event of a stream.
	Event = sseclient.Event
	// Resource is one member of a watch in its JSON form.
	Resource = sseclient.Resource
	// HelloWatch is one watch of a stream.
	HelloWatch = sseclient.HelloWatch
	// Problem is a refusal by the server.
	Problem = sseclient.Problem
)
