package rest

import (
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/unary"
)

// BoundBodies bounds the time for the body of every request that has one, and refuses a
// body where it has no meaning (RFC 9110, sections 9.3.1 and 9.3.5): net/http would
// wait for it before the first byte of an answer.
func BoundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if mayHaveTwoLengths(r) {
			w.Header().Set("Connection", "close")
		}
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// net/http clears the deadline at the end of the body. An error would mean
		// that the connection has no deadlines, as in a test without one.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unary.BodyTimeout))
		if p := unwantedBody(r); p != nil {
			closeUnread(w, r)
			problem.Write(w, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// closeUnread closes the connection after the answer, instead of waiting for the rest
// of an unwanted body.
func closeUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// mayHaveTwoLengths reports whether a proxy on the way may see the body of r end
// elsewhere: it had both Transfer-Encoding and Content-Length, or the former in a
// request of HTTP/1.0. No other request may follow on such a connection (RFC 9112,
// section 6.1). net/http hides one of the two, so every request that may have had
// both counts.
func mayHaveTwoLengths(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// unwantedBody refuses the body of a method that has none. A body of unknown length
// may turn out to be empty.
func unwantedBody(r *http.Request) *problem.Problem {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return anyBody(r)
	}
	return nil
}

// WithoutBody refuses a body of a request whose method may have one.
func WithoutBody(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := anyBody(r); p != nil {
			closeUnread(w, r)
			problem.Write(w, p)
			return
		}
		next(w, r)
	}
}

// anyBody refuses a body of a request that must have none.
func anyBody(r *http.Request) *problem.Problem {
	if r.ContentLength == 0 {
		return nil
	}
	n, err := 1, error(nil)
	if r.ContentLength < 0 {
		n, err = r.Body.Read(make([]byte, 1))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return lateBody(0)
	case n > 0:
		return problem.BadParameter("body", "the request has a body: want none for %s, and parameters in the query of the URL", r.Method)
	}
	return nil
}

// lateBody returns the 408 for a body of which only n bytes arrived.
func lateBody(n int) *problem.Problem {
	return problem.New(http.StatusRequestTimeout, "the body did not arrive within %s: %d bytes did", unary.BodyTimeout, n)
}
