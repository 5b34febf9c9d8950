package problem

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
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Problem is the one error type at the edge: problem+json (RFC 9457) over HTTP, a
// status over gRPC. Type is about:blank: the status is the kind of problem; watch,
// key and parameter are its location.
//
// It must not be modified once handed over.
type Problem struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Detail      string `json:"detail"`
	Watch       string `json:"watch,omitempty"`
	Key         string `json:"key,omitempty"`
	KeyEncoding string `json:"key_encoding,omitempty"`
	Parameter   string `json:"parameter,omitempty"`
	*Place             // in the parameter; nil: it is wrong as a whole

	// allow is the Allow header of a 405.
	Allow string `json:"-"`
	// Challenge is the WWW-Authenticate header of a 401.
	Challenge string `json:"-"`
	// retryAfter is the Retry-After header, if not 0; rounded up to seconds.
	RetryAfter time.Duration `json:"-"`
	// Full is set if a template has too many watches open, in all or for the client.
	Full *watch.FullError `json:"-"`
	// Undecided is set if it is not known yet what the client may read.
	Undecided bool `json:"-"`
	// extra is a JSON object whose members are added to those of the problem.
	Extra []byte `json:"-"`
}

// Place is where the mistake in a parameter begins.
type Place struct {
	Offset int `json:"offset"` // in bytes
	Line   int `json:"line"`   // from 1
	Column int `json:"column"` // in code points, from 1
}

// statusClientClosedRequest is the status in logs of a request whose client
// disconnected before the answer (nginx's number). No client reads it.
const statusClientClosedRequest = 499

// New makes a problem from an HTTP status and a sentence that names the error,
// its location and the expected form.
func New(status int, format string, args ...any) *Problem {
	title := http.StatusText(status)
	if status == statusClientClosedRequest {
		title = "Client Closed Request"
	}
	return &Problem{
		Type: "about:blank", Title: title, Status: status,
		Detail: strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"),
	}
}

// BadParameter returns a 400 that names the parameter (or the header).
func BadParameter(name, format string, args ...any) *Problem {
	p := New(http.StatusBadRequest, format, args...)
	p.Parameter = strings.ToValidUTF8(name, "\uFFFD")
	return p
}

// OnWatch names the watch that the problem is about.
func (p *Problem) OnWatch(name string) *Problem {
	p.Watch = strings.ToValidUTF8(name, "\uFFFD")
	return p
}

// OnKey names the resource that the problem is about.
func (p *Problem) OnKey(key string) *Problem {
	p.Key, p.KeyEncoding = stream.WireKey(key)
	return p
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

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
func (p *Problem) GRPCStatus() *status.Status {
	code, ok := codeOf[p.Status]
	if !ok {
		code = codes.InvalidArgument
	}
	return status.New(code, p.Detail)
}

// NoStore forbids caches to store an answer. It leaves a Cache-Control that does so already.
func NoStore(h http.Header) {
	if !strings.Contains(h.Get("Cache-Control"), "no-store") {
		h.Set("Cache-Control", "no-store")
	}
}

// Write answers with a problem. The response must not have begun.
func Write(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	NoStore(h)
	h.Del("ETag")
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.Challenge != "" {
		h.Set("WWW-Authenticate", p.Challenge)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
	body, _ := json.Marshal(p) // strings and an int: cannot fail
	if len(p.Extra) > len("{}") {
		body = append(append(body[:len(body)-1], ','), p.Extra[1:]...)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n'))
}

// Of maps any error to a problem. An error that it does not know becomes a 500
// whose detail reveals nothing internal: log the error itself.
func Of(err error) *Problem {
	var (
		known    *Problem
		invalid  *stream.InvalidError
		conflict *stream.ConflictError
		tooLarge *stream.TooLargeError
		unable   *stream.UnavailableError
		unknown  *stream.OutcomeUnknownError
		rejected *stream.RejectedError
		denied   *stream.DeniedError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid):
		return BadParameter(strings.ReplaceAll(invalid.What, " ", "_"), "%s", invalid.Error())
	case errors.As(err, &conflict):
		return conflictProblem(conflict)
	case errors.As(err, &tooLarge):
		return New(http.StatusRequestEntityTooLarge, "%s", tooLarge.Error())
	case errors.As(err, &unable):
		return New(http.StatusServiceUnavailable, "%s", unable.Error())
	case errors.As(err, &rejected):
		return New(http.StatusUnprocessableEntity, "%s", rejected.Error()).OnKey(rejected.Key)
	case errors.As(err, &denied):
		return New(http.StatusForbidden, "%s", denied.Error()).OnKey(denied.Key)
	case errors.As(err, &unknown):
		return New(http.StatusGatewayTimeout, "%s", unknown.Error()).OnKey(unknown.Key)
	case errors.Is(err, log.ErrPageGone):
		p := New(http.StatusGone, "the revision that page_token belongs to is gone: begin again without page_token")
		p.Parameter = "page_token"
		return p
	case errors.Is(err, context.Canceled):
		return New(statusClientClosedRequest, "the client closed the request")
	case errors.Is(err, context.DeadlineExceeded):
		return New(http.StatusGatewayTimeout, "no answer within the deadline of the request")
	default:
		return problemOfStatus(err)
	}
}

func conflictProblem(c *stream.ConflictError) *Problem {
	p := New(http.StatusPreconditionFailed, "%s", c.Error()).OnKey(c.Key)
	p.Parameter = "If-Match"
	if c.Want == 0 {
		p.Parameter = "If-None-Match"
	}
	return p
}

// problemOfStatus maps a gRPC status that is not one of ours, such as errors of
// grpc-gateway's generated code about parameters.
func problemOfStatus(err error) *Problem {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.Unknown || s.Code() == codes.Internal {
		return New(http.StatusInternalServerError, "internal error")
	}
	return New(runtime.HTTPStatusFromCode(s.Code()), "%s", s.Message())
}

// WriteJSON answers with a value that can always be encoded, and that is true only now.
func WriteJSON(w http.ResponseWriter, v any) {
	body, _ := json.Marshal(v)
	WriteJSONBody(w, append(body, '\n'))
}

// WriteJSONBody answers with some JSON that is true only now.
func WriteJSONBody(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	NoStore(w.Header())
	_, _ = w.Write(body) // an error means that the client disconnected
}
