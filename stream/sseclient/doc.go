// Package sseclient reads one stream of events of a gateway over HTTP: from the
// request to the end of the response. Who reads it decides whether and when there
// is another one, and from which position it goes on.
//
// The response is read by the r3labs/sse client, one for each stream. What it
// does differently from what such a stream needs is corrected around it:
//
//   - A clean end of the response is final for it, and its own back-off gives up
//     after 15 minutes, or not at all when a context ends. Its back-off is
//     switched off, and there is none here.
//   - It limits events to 64 KiB. Here Stream.MaxEventBytes does.
//   - It ignores retry. Ending has it.
//   - It hands over an event that was cut off when the connection broke, half an
//     id included, and looks through everything that it has buffered for each
//     event. It is given whole events only, one at a time.
//   - It hands over a heartbeat as an empty event with the id of the event
//     before. Events without data are not looked at, and an id counts only if
//     the event brought it along.
//   - It has no notion of silence. The bytes of the response are watched.
package sseclient
