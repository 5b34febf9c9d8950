package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
)

// valueBody is a request body that was read and found to be JSON. Its claim is a part
// of Config.BodyBudget and must be released.
type valueBody struct {
	raw   []byte
	claim *limits.Claim
}

// Read implements io.Reader. The marshaler takes the bytes directly.
func (*valueBody) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (*valueBody) Close() error { return nil }

// readValue reads the body, which must be one JSON value in UTF-8. A body that is too
// large, or for which the budget has no room, is refused unread.
func (a *API) readValue(r *http.Request, watch authz.Handle) (*valueBody, *problem.Problem) {
	return a.readJSON(r, watch.ValueLimit())
}

// readJSON is like readValue, for a body of at most limit bytes.
func (a *API) readJSON(r *http.Request, limit int64) (*valueBody, *problem.Problem) {
	if r.ContentLength > limit {
		return nil, problem.Of(&stream.TooLargeError{What: "body", Size: r.ContentLength, Limit: limit})
	}
	size := r.ContentLength
	if size < 0 {
		size = limit
	}
	claim, p := a.Bodies.Claim(a.payer(r), size)
	if p != nil {
		return nil, p
	}
	raw, p := readBody(r, limit)
	if p == nil {
		p = checkJSON(raw)
	}
	if p != nil {
		claim.Release()
		return nil, p
	}
	claim.Shrink(int64(len(raw)))
	return &valueBody{raw: raw, claim: claim}, nil
}

// readBody reads a body of at most limit bytes.
func readBody(r *http.Request, limit int64) ([]byte, *problem.Problem) {
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead) // or it would grow to see the end
	}
	n, err := body.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case n > limit:
		return nil, problem.New(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, lateBody(int(n))
	case err != nil:
		return nil, problem.New(http.StatusBadRequest, "the body broke off after %d bytes: %v", n, err)
	}
	return body.Bytes(), nil
}
