package consul

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

// hidden means that the token may not read what is followed.
type hidden struct{ why string }

// Error returns why.
func (h *hidden) Error() string { return h.why }

// where names the upstream in messages.
func (a *api) where() string {
	what := a.config.collection()
	switch {
	case a.config.Service != "":
		what += fmt.Sprintf(" of %.80q", a.config.Service)
	case what == KV:
		what += fmt.Sprintf(" %.80q", a.config.Prefix)
	}
	return fmt.Sprintf("consul %s%s, %s", a.config.HTTPAddress, a.proxy, what)
}

// refusedBy adds the upstream and the remedy to an error, and hides the token in it. right are the rules that
// the request needs.
func (c *Config) refusedBy(err error, a *api, right string) error {
	if err == nil {
		return nil
	}
	var secrets []string
	if token, _ := c.token(); token != "" {
		secrets = append(secrets, token)
	}
	text := adapter.HideSecret(err.Error(), slices.Values(secrets))
	return adapter.NewFailure(err, a.where()+": "+text+c.remedy(err, right))
}

// remedy suggests one, where the error indicates it.
func (c *Config) remedy(err error, right string) string {
	var no *refusal
	status, text := 0, err.Error()
	if errors.As(err, &no) {
		status, text = no.status, no.text
	}
	has := func(s string) bool { return strings.Contains(text, s) }
	if has("key:list") { // with acl.enable_key_list_policy
		right = strings.Replace(right, `"read"`, `"list"`, 1)
	}
	switch {
	case c.TokenFile == "" && (errors.As(err, new(*hidden)) || status == http.StatusForbidden || has("ACL not found")):
		return "; want token_file with a token whose policy has " + right
	case errors.As(err, new(*hidden)):
		return "; want a token whose policy has " + right + "; a gateway that is started again serves what is left"
	case has("ACL not found"):
		return "; want a token that exists in " + c.TokenFile + ": this one is unknown, or was deleted"
	case status == http.StatusForbidden:
		return "; want a token whose policy has " + right
	case has("Consul Enterprise feature"):
		return "; want no tenancy: this Consul is not Enterprise"
	case has("No path to datacenter"):
		return "; want a datacenter that this one is joined with"
	case errors.Is(err, errTooLarge):
		return "; want a larger max_message_bytes, or a smaller part: an answer has the whole list"
	case has("HTTP request to an HTTPS server"), has("HTTP response to HTTPS client"):
		return "; want tls where the port speaks it (8501 in Consul's documentation), and none where it does not (8500)"
	case has("malformed HTTP"):
		return "; want the HTTP port (8500, or 8501 with TLS), not the gRPC port"
	case status == http.StatusNotFound:
		return "; want the HTTP API of Consul 1.18 or later"
	}
	return ""
}
