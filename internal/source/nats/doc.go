// Package nats follows a key-value bucket of NATS JetStream.
//
// A bucket is a stream of messages: the subject is the key, the newest message of a
// subject is its value or its deletion, and the sequence in the stream is the
// revision. Only as many messages of a key are kept as the bucket has history, mostly
// one.
//
// # One point in time
//
// The server has no read of everything at one sequence: it sends the last message of
// each key, one after the other, and a key that is written meanwhile is sent later
// instead. So the messages read up to a sequence are not the state of the bucket at
// that sequence, until nothing is outstanding. The reader determines when that is:
//
//   - A message right behind the one before it, by its sequence, leaves nothing
//     out. While messages come like that, each is a state that existed.
//   - Where sequences are missing, the messages were replaced by newer ones. Those
//     existed when the message behind the gap was sent, so the state is one that
//     existed as soon as the newest message of that moment has come. The server is
//     queried for it.
//
// Only then is there a Commit; until then messages are held back.
//
// # What vanishes without a message
//
// A deleted key leaves a message with a sequence. A key that expires (unless the
// bucket leaves markers), that an administrator purges from the stream, or whose
// marker is purged, leaves nothing. The reader remembers the names of all keys,
// compares their number with the server's at intervals and when it resumes, requests
// the names if they differ, and deletes the missing ones. Such a delete has no
// revision of its own.
//
// # One consumer, never replaced silently
//
// The ordered consumer of the client library silently restarts after a fault. Here
// the consumer is made once for a connection, every delivery is counted, heartbeats
// of the server report how many there should have been, and any doubt ends the Watch
// call. The library's own reconnecting is off for the same reason. The next call
// resumes by sequence if the bucket is provably the same, by its creation time and by
// the last message read.
//
// # Goroutines
//
// All state is owned by the goroutine that calls Watch; it has another one only while
// a request is running, to detect whether the line is silent meanwhile. The client
// library has some for a connection. Before Watch returns the connection is closed,
// and those of them that call back have ended.
package nats
