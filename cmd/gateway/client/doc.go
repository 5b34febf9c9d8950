// Package client follows and reads the watches of a gateway over HTTP.
//
// Follow is one stream that survives: it reconnects with a back-off, resumes
// from the newest id, obeys retry and goodbye, and notices a connection that
// has gone quiet. Replica holds what a stream says of one watch.
//
// The connections are those of the r3labs/sse client, one client for each
// connection. What it does differently from what a stream of this kind needs is
// corrected around it, in connection.go and body.go:
//
//   - A clean end of the response is final for it, and its own back-off gives
//     up after 15 minutes, or not at all when a context ends. Its back-off is
//     switched off; Follow has its own.
//   - It limits events to 64 KiB. Here they may have MaxEventBytes.
//   - It hands over a heartbeat as an empty event with the id of the event
//     before. Events without data are not looked at, and an id counts only if
//     the event brought it along.
//   - It hands over an event that was cut off when the connection broke, id
//     included. A cut event is renamed before it reaches it.
//   - It has no notion of silence. The bytes of the response are watched.
package client
