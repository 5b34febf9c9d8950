package kubernetes

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

	"github.com/watchtide/watchtide/stream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	errClosed   = errors.New("kubernetes: the source is closed")
	errNoAnswer = fmt.Errorf("%w: no answer within %v", stream.ErrStalled, silence)
	errOverdue  = fmt.Errorf("%w: the watch did not end when it should have", stream.ErrStalled)
)

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

// dead reports whether a connection was given up for lack of data. The first
// text is that of net/http for an unanswered ping; it has no type.
func dead(err error) bool {
	text := err.Error()
	return strings.Contains(text, "client connection lost") || strings.Contains(text, "TLS handshake timeout")
}

// withoutURL removes what http.Client prefixes to an error: a long query.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// refusal converts an answer other than 200 to an error: the server's message
// if it is a Kubernetes status, else the meaning of its code.
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

// unexpected is the error of an answer that is not a Kubernetes status: from a
// proxy, or from another kind of server.
func unexpected(code int, said string, retryAfter int) error {
	err := apierrors.NewGenericServerResponse(code, http.MethodGet, schema.GroupResource{}, "", said, retryAfter, true)
	if text := err.ErrStatus.Message; said != "" && code < http.StatusInternalServerError {
		err.ErrStatus.Message = text + ": " + said
	}
	return err
}

// shorten keeps the text that a proxy may write before its HTML.
func shorten(text string) string {
	const most = 200
	text = strings.TrimSpace(text)
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// expired reports whether the server has forgotten the position to resume from.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// hint suggests a remedy, where the error indicates one.
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
