package netconn

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"time"
)

// connKey is the context key of the connection of a request that Serve accepted.
// In other servers the underlying connection is unknown, and the connection
// stays with net/http.
type connKey struct{}

// WithConn is http.Server.ConnContext: it lets a request find its connection.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// WholeConn returns the connection of a request, and whether the response may use all
// of it, and is sent in chunks.
func WholeConn(r *http.Request) (net.Conn, bool) {
	c, accepted := ConnOfRequest(r)
	return c, accepted && r.ProtoMajor == 1 && r.ProtoMinor >= 1
}

// ResponseHead returns the head that net/http would have written.
func ResponseHead(h http.Header) []byte {
	h["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	h["Connection"] = []string{"close"}
	h["Transfer-Encoding"] = []string{"chunked"}
	var head bytes.Buffer
	head.Grow(512)
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&head) // a buffer takes everything
	head.WriteString("\r\n")
	return head.Bytes()
}

// CutOff ends a response while another goroutine is writing it: over HTTP/1.1 its
// connection, over HTTP/2 its stream.
func CutOff(w http.ResponseWriter, r *http.Request) {
	if c, accepted := ConnOfRequest(r); accepted && r.ProtoMajor == 1 {
		c.Close() // it ignores deadlines, see StallTimeoutConn
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
}

// ConnOfRequest returns the connection of a request, if Serve accepted it.
func ConnOfRequest(r *http.Request) (net.Conn, bool) {
	c, accepted := r.Context().Value(connKey{}).(net.Conn)
	return c, accepted
}
