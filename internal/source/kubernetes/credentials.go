package kubernetes

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

// credentials are those of the last request, of whatever origin: a file, a program,
// or the kubeconfig. They are known only when they are sent.
//
// Safe for concurrent use.
type credentials struct{ header atomic.Pointer[string] }

// hide hides the credentials in a text that the server may have written.
func (c *credentials) hide(text string) string {
	header := c.header.Load()
	if header == nil {
		return text
	}
	secrets := []string{*header}
	if encoded, ok := strings.CutPrefix(*header, "Basic "); ok {
		pair, _ := base64.StdEncoding.DecodeString(encoded)
		_, password, _ := strings.Cut(string(pair), ":")
		secrets = append(secrets, password)
	}
	return adapter.HideSecret(text, slices.Values(secrets))
}

// noting notes the credentials of requests, just before they are sent.
type noting struct {
	http.RoundTripper
	sent *credentials
}

// RoundTrip implements http.RoundTripper.
func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		n.sent.header.Store(&header)
	}
	return n.RoundTripper.RoundTrip(r)
}
