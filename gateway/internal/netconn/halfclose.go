package netconn

import (
	"context"
	"net/http"
)

// inputEndedKey is the context key of a channel that is closed when a client has
// ended its side of a connection.
type inputEndedKey struct{}

// InputEnded returns a channel that is closed when the client of a request sends
// nothing more, but may still read; nil: this is not reported.
func InputEnded(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(inputEndedKey{}).(<-chan struct{})
	return c
}

// HalfClose lets a client of HTTP/1 end its side of the connection after its request,
// and still read the answer (RFC 9112, section 9.6). net/http then cancels the
// request, as it does when the client has disconnected. Here the request continues
// unless the connection was reset; a client that disconnected resets it at the first
// bytes that it is sent.
func HalfClose(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, accepted := ConnOfRequest(r)
		if r.ProtoMajor != 1 || !accepted {
			next.ServeHTTP(w, r)
			return
		}
		ended := r.Context()
		ctx, cancel := context.WithCancel(context.WithoutCancel(ended))
		defer cancel()
		defer context.AfterFunc(ended, func() {
			if !mayRead(conn) {
				cancel()
			}
		})()
		ctx = context.WithValue(ctx, inputEndedKey{}, ended.Done())
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
