package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// lost returns the error of Watch when the request has ended for all its members:
// nil after an orderly goodbye, unless the upstream does not want to serve us.
func (s *Source) lost(end client.Ending) error {
	if end.Goodbye == nil {
		return s.failed(end.Err)
	}
	switch reason := end.Goodbye.Reason; reason {
	case client.GoodbyeOverloaded, client.GoodbyeTokenExpired, client.GoodbyeRevoked, client.GoodbyeWatchRemoved:
		return fmt.Errorf("%s: goodbye, %s", s.where(), reason)
	}
	return nil
}

// failed adds the upstream to an error. It contains the upstream's own text.
func (s *Source) failed(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without the whole URL
	}
	header, _ := s.upstream.config.header() // an unreadable token was not sent
	text := adapter.HideSecret(err.Error(), maps.Values(header))
	return adapter.NewFailure(kindOf(err), fmt.Sprintf("%s: %s%s", s.where(), text, hint(err)))
}

// kindOf returns an error of the client as package stream has it.
func kindOf(err error) error {
	switch {
	case errors.Is(err, client.ErrStalled):
		return stream.ErrStalled
	case errors.Is(err, client.ErrInvalid):
		return stream.ErrInvalid
	}
	return err
}

// where names the watch at its upstream.
func (s *Source) where() string {
	return fmt.Sprintf("gateway %s%s, watch %q", s.upstream.config.URL, s.upstream.config.through(), s.watch)
}

// hints suggest a remedy, by the status of a refusal.
var hints = map[int]string{
	http.StatusUnauthorized:      "want a token in token_file, or a header, that it accepts",
	http.StatusForbidden:         "want a token, or a header, that may read this watch",
	http.StatusMethodNotAllowed:  "want the URL of a gateway, without /v1",
	http.StatusNotAcceptable:     "want the URL of a gateway, which answers with text/event-stream",
	http.StatusProxyAuthRequired: "want a proxy that lets this request pass, or none (NO_PROXY)",
}

// tooLarge reports whether an event was longer than allowed.
func tooLarge(err error) bool {
	return err != nil && strings.Contains(err.Error(), "an event has more than")
}

func hint(err error) string {
	var refused *client.Problem
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound && refused.Watch == "":
		return "; want the URL of a gateway, without /v1"
	case refused != nil && hints[refused.Status] != "":
		return "; " + hints[refused.Status]
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "; want a URL that begins with http: if that is what the server speaks"
	case tooLarge(err):
		return "; want a larger max_event_bytes, or smaller values"
	}
	return ""
}
