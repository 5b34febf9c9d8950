package wire

import (
	"net"
	"net/http"

	"github.com/klauspost/compress/gzip"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/headers"
)

// WriteJSON writes the parts of some JSON, which may not be cached, compressed if the client accepts
// that.
func WriteJSON(w http.ResponseWriter, r *http.Request, parts ...[]byte) {
	body := net.Buffers(parts)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Vary", "Accept-Encoding")
	problem.NoStore(w.Header())
	if !headers.AcceptsGzip(r.Header.Values("Accept-Encoding")) {
		_, _ = body.WriteTo(w) // an error means that the client disconnected
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // never fails: the level is valid
	_, _ = body.WriteTo(z)
	_ = z.Close()
}
