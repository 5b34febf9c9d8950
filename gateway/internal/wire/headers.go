package wire

import (
	"net/http"

	"github.com/watchtide/watchtide/internal/frame"
)

// private is the beginning of Cache-Control in an answer for one principal only.
const private = "private, no-store"

// MarkPrivate sets headers that forbid caches and proxies to store an answer. They also apply
// to an answer with the headers of a stream.
func MarkPrivate(h http.Header) {
	h.Set("Cache-Control", private)
	h.Add("Vary", "Authorization, Cookie")
}

// SetStreamHeaders sets headers that make every cache and proxy on the way pass the
// bytes on as they come. What MarkPrivate has set stays true.
func SetStreamHeaders(h http.Header, f frame.Format, gzip bool) {
	cache, vary := "no-cache, no-store, no-transform", "Accept, Origin, Accept-Encoding"
	if h.Get("Cache-Control") == private {
		cache, vary = private+", no-transform", vary+", Authorization, Cookie"
	}
	h.Set("Content-Type", TypeSSE+"; charset=utf-8")
	if f == frame.NDJSON {
		h.Set("Content-Type", TypeNDJSON)
	}
	if gzip {
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Cache-Control", cache)
	h.Set("X-Accel-Buffering", "no") // nginx
	h.Set("Incremental", "?1")       // RFC 10036
	h.Set("Vary", vary)
}
