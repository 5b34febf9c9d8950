// Package h2 serves connections of HTTP/2 (RFC 9113). Each request is handled in a goroutine, as
// net/http does. A handler can detach its stream: then the connection keeps it open without a
// goroutine, and others write to it without waiting.
package h2
