package unary

import (
	"errors"
	"net/http"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
)

// KeyProblem is the answer to a key that does not match key_encoding.
func KeyProblem(wire string, err error) *problem.Problem {
	var invalid *stream.InvalidError
	if errors.As(err, &invalid) {
		return problem.BadParameter("key_encoding", "%s", invalid.Error())
	}
	return problem.BadParameter("key", "key %q is not base64, as key_encoding says: %v", wire, err)
}

// ReadOnly is the answer to a write to a watch without a writer.
func ReadOnly(watch string) *problem.Problem {
	p := problem.New(http.StatusMethodNotAllowed, "watch %q is read-only: it is not configured as writable, or its source takes no writes", watch).OnWatch(watch)
	p.Allow = "GET, HEAD"
	return p
}
