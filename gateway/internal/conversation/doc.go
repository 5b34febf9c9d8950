// Package conversation is what the gateway says on one stream, whatever carries its
// bytes: hello, the events of its watches, bookmarks, heartbeats, goodbye.
package conversation
