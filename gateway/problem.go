package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/log"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// problem is the one error type at the edge: problem+json (RFC 9457) over HTTP, a
// status over gRPC. Type is about:blank: the status says what kind of problem it is;
// watch, key and parameter say where.
//
// It must not be modified once handed over.
type problem struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Detail      string `json:"detail"`
	Watch       string `json:"watch,omitempty"`
	Key         string `json:"key,omitempty"`
	KeyEncoding string `json:"key_encoding,omitempty"`
	Parameter   string `json:"parameter,omitempty"`

	// allow is the Allow header of a 405.
	allow string
	// retryAfter is the Retry-After header, if not 0; rounded up to seconds.
	retryAfter time.Duration
	// extra is a JSON object whose members are added to those of the problem.
	extra []byte
}

// statusClientClosedRequest is what logs of HTTP servers call a request whose client
// left before the answer (nginx's number). No client reads it.
const statusClientClosedRequest = 499

// newProblem makes a problem from an HTTP status and a sentence that says what was
// wrong, where, and what would be right.
func newProblem(status int, format string, args ...any) *problem {
	title := http.StatusText(status)
	if status == statusClientClosedRequest {
		title = "Client Closed Request"
	}
	return &problem{
		Type: "about:blank", Title: title, Status: status,
		Detail: strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"),
	}
}

// badParameter returns a 400 that names the parameter (or the header).
func badParameter(name, format string, args ...any) *problem {
	p := newProblem(http.StatusBadRequest, format, args...)
	p.Parameter = strings.ToValidUTF8(name, "\uFFFD")
	return p
}

// onWatch names the watch that the problem is about.
func (p *problem) onWatch(name string) *problem {
	p.Watch = strings.ToValidUTF8(name, "\uFFFD")
	return p
}

// onKey names the resource that the problem is about.
func (p *problem) onKey(key string) *problem {
	p.Key, p.KeyEncoding = stream.WireKey(key)
	return p
}

// Error implements error.
func (p *problem) Error() string { return p.Detail }

// codeOf maps the gateway's HTTP statuses to gRPC codes.
var codeOf = map[int]codes.Code{
	http.StatusUnauthorized:          codes.Unauthenticated,
	http.StatusForbidden:             codes.PermissionDenied,
	http.StatusNotFound:              codes.NotFound,
	http.StatusMethodNotAllowed:      codes.Unimplemented,
	http.StatusRequestTimeout:        codes.DeadlineExceeded,
	http.StatusGone:                  codes.OutOfRange, // like etcd's "compacted"
	http.StatusPreconditionFailed:    codes.Aborted,    // compare-and-set: read again, then retry
	http.StatusRequestEntityTooLarge: codes.ResourceExhausted,
	http.StatusMisdirectedRequest:    codes.FailedPrecondition, // until an operator configures the name
	http.StatusTooManyRequests:       codes.ResourceExhausted,
	http.StatusInternalServerError:   codes.Internal,
	http.StatusServiceUnavailable:    codes.Unavailable,
	http.StatusGatewayTimeout:        codes.DeadlineExceeded,
	statusClientClosedRequest:        codes.Canceled,
}

// GRPCStatus returns the status that the client sees if a gRPC method returns the
// problem.
func (p *problem) GRPCStatus() *status.Status {
	code, ok := codeOf[p.Status]
	if !ok {
		code = codes.InvalidArgument
	}
	return status.New(code, p.Detail)
}

// writeProblem answers with a problem. The response must not have begun.
func writeProblem(w http.ResponseWriter, p *problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag")
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	body, _ := json.Marshal(p) // strings and an int: cannot fail
	if len(p.extra) > len("{}") {
		body = append(append(body[:len(body)-1], ','), p.extra[1:]...)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n'))
}

// problemOf maps any error to a problem. An error that it does not know becomes a 500
// whose detail reveals nothing internal: log the error itself.
func problemOf(err error) *problem {
	var (
		known    *problem
		invalid  *stream.InvalidError
		conflict *stream.ConflictError
		tooLarge *stream.TooLargeError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid):
		return badParameter(strings.ReplaceAll(invalid.What, " ", "_"), "%s", invalid.Error())
	case errors.As(err, &conflict):
		return conflictProblem(conflict)
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "%s", tooLarge.Error())
	case errors.Is(err, log.ErrPageGone):
		p := newProblem(http.StatusGone, "the revision that page_token belongs to is gone: begin again without page_token")
		p.Parameter = "page_token"
		return p
	case errors.Is(err, context.Canceled):
		return newProblem(statusClientClosedRequest, "the client closed the request")
	case errors.Is(err, context.DeadlineExceeded):
		return newProblem(http.StatusGatewayTimeout, "no answer within the deadline of the request")
	default:
		return problemOfStatus(err)
	}
}

func conflictProblem(c *stream.ConflictError) *problem {
	p := newProblem(http.StatusPreconditionFailed, "%s", c.Error()).onKey(c.Key)
	p.Parameter = "If-Match"
	if c.Want == 0 {
		p.Parameter = "If-None-Match"
	}
	return p
}

// problemOfStatus maps a gRPC status that is not one of ours, such as what
// grpc-gateway's generated code says about parameters.
func problemOfStatus(err error) *problem {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.Unknown || s.Code() == codes.Internal {
		return newProblem(http.StatusInternalServerError, "internal error")
	}
	return newProblem(runtime.HTTPStatusFromCode(s.Code()), "%s", s.Message())
}
