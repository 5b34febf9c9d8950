package kubesource

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchtide/watchtide/stream"
)

var (
	errClosed   = errors.New("kubesource: the source is closed")
	errNoAnswer = fmt.Errorf("%w: no answer within %v", stream.ErrStalled, silence)
	errOverdue  = fmt.Errorf("%w: the watch did not end when it should have", stream.ErrStalled)
)

// failure is an error with another text.
type failure struct {
	cause error
	text  string
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", stream.ErrInvalid, fmt.Sprintf(format, args...))
}

// because returns why a request ended: the context's reason if that ended it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if dead(err) {
		return fmt.Errorf("%w: %w", stream.ErrStalled, withoutURL(err))
	}
	return withoutURL(err)
}

// dead says whether a connection was given up since nothing came over it. The
// first text is what net/http says of a ping without an answer; it has no type.
func dead(err error) bool {
	text := err.Error()
	return strings.Contains(text, "client connection lost") || strings.Contains(text, "TLS handshake timeout")
}

// withoutURL drops what http.Client puts before an error: a long query.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// refusal makes an error of an answer that is not 200: what the server says in
// Kubernetes' own words, else what its code means.
func refusal(answer *http.Response) error {
	const most = 1 << 20
	body, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil {
		return withoutURL(err)
	}
	after, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "" {
		if status.Details == nil && after > 0 {
			status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(after)}
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	return unexpected(answer.StatusCode, shorten(string(body)), after)
}

// unexpected is the error of an answer that says nothing in Kubernetes' words: of
// a proxy, or of a server of something else.
func unexpected(code int, said string, retryAfter int) error {
	err := apierrors.NewGenericServerResponse(code, http.MethodGet, schema.GroupResource{}, "", said, retryAfter, true)
	if text := err.ErrStatus.Message; said != "" && code < http.StatusInternalServerError {
		err.ErrStatus.Message = text + ": " + said
	}
	return err
}

// shorten keeps what a proxy may say before its HTML.
func shorten(text string) string {
	const most = 200
	text = strings.TrimSpace(text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// expired says whether the server has forgotten what we wanted to go on from.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// hint says what would be right, where the error tells.
func hint(err error) string {
	switch {
	case apierrors.IsUnauthorized(err):
		return "; want credentials that the server knows and that have not expired"
	case apierrors.IsForbidden(err):
		return "; want a role that may list and watch it"
	case apierrors.IsMethodNotSupported(err):
		return "; want a resource that can be listed and watched"
	case strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
		return "; want https:// in the server's address"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "; want the certificate-authority that signed the server's certificate, and the name in it as the address"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; want http:// if that is what the server speaks"
	case errors.As(err, new(*net.DNSError)):
		return "; want a name that can be resolved"
	}
	return ""
}
