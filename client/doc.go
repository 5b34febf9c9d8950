// Package client follows, reads and writes the watches of a gateway over HTTP.
//
// A [Client] has one method for each way to use a watch:
//
//	c, err := client.New("http://127.0.0.1:8080", client.Options{})
//
//	for change, err := range c.Watch(ctx, "services") // each change
//	services := c.Replica(ctx, "services")            // a copy that is kept up to date
//	snapshot, err := c.Snapshot(ctx, "services", v)   // the state of now; Get: one resource
//	stored, err := c.Put(ctx, "services", key, value, client.Condition{}) // and Delete
//
// [Client.Watch] is one stream that survives lost connections: it reconnects with a back-off,
// resumes from the newest id, obeys retry and goodbye, notices a silent connection, and can go on
// without a watch that is refused. If it has a token, it asks for the newest one before each
// request. A [Replica] is made of such a stream, and shows only states that the upstream had;
// [ReplicaOf] decodes its values.
//
// [Stream] is a single connection, from the request to the end of the response. Its
// caller decides whether and when to make another request, and from which position.
// The response is read by the r3labs/sse client, one for each stream. This package
// corrects it where it does not fit such a stream:
//
//   - A clean end of the response is final for it, and its own back-off gives up
//     after 15 minutes, or not at all when a context ends. Its back-off is
//     switched off, and there is none here.
//   - It limits events to 64 KiB. Here Stream.MaxEventBytes sets the limit.
//   - It ignores retry. Here Ending has it.
//   - It hands over an event that was cut off when the connection broke, half an
//     id included, and searches everything that it has buffered for each
//     event. It is given whole events only, one at a time.
//   - It hands over a heartbeat as an empty event with the id of the previous
//     event. Events without data are ignored, and an id counts only if the
//     event contained it.
//   - It has no notion of silence. Here the bytes of the response are watched.
package client
