package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// Config specifies which gateway is followed, and how.
type Config struct {
	// URL of the gateway, for instance "https://core.example.com", with a path if
	// it is served below one. Required.
	URL string `yaml:"url,required,is=gateway url"`
	// TLS holds the trusted authorities, and optionally our own certificates.
	// nil: the authorities of the system. Only for https.
	TLS *tls.Config `yaml:"tls"`
	// TokenFile holds a token that is sent as Authorization: Bearer. It is read
	// for each request, so that the token may rotate. "": none.
	TokenFile string `yaml:"token_file,is=file of a secret"`
	// Headers are sent with each request. They are never logged.
	Headers adapter.Metadata `yaml:"headers,files=header_files,names=header"`
	// StallAfter is how long nothing at all may arrive before the upstream counts
	// as stalled. 0: two and a half of its heartbeats.
	StallAfter time.Duration `yaml:"stall_after"`
	// MaxEventBytes is the size of the largest event accepted. 0:
	// client.MaxEventBytes.
	MaxEventBytes int `yaml:"max_event_bytes,bytes"`

	// network, if set, makes the connections: tests have one in memory.
	network func(ctx context.Context, network, address string) (net.Conn, error)
}

// WantURL describes what ValidURL accepts, for error messages.
const WantURL = `a URL such as "https://core.example.com" or "http://core:8080/path", without credentials, query or fragment`

// ValidURL reports whether a gateway can be at a URL.
func ValidURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

func (c *Config) check() error {
	if c.URL == "" {
		return errors.New("gateway: no URL: want " + WantURL)
	}
	if !ValidURL(c.URL) {
		return fmt.Errorf("gateway: %w", &stream.InvalidError{What: "url", Got: c.redactedURL(), Want: WantURL})
	}
	if c.StallAfter < 0 || c.MaxEventBytes < 0 {
		return errors.New("gateway: stall after and maximum event size: want 0 or more")
	}
	err := c.checkHeaders()
	c.Validate(func(_ any, problem string) { err = errors.New("gateway: " + problem) })
	return err
}

// Validate reports fields that cannot be together.
func (c *Config) Validate(report func(field any, problem string)) {
	if c.TLS != nil && !strings.HasPrefix(c.URL, "https:") {
		report(c, "tls is given for a url that begins with http: want https, or no tls")
	}
	for name := range c.Headers {
		if c.TokenFile != "" && http.CanonicalHeaderKey(name) == "Authorization" {
			report(c, "want token_file, or a header Authorization, not both")
		}
	}
}

// redactedURL is the URL without a password that it may contain.
func (c *Config) redactedURL() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "not a URL"
	}
	return u.Redacted()
}

// checkHeaders names a header, never a value: values are secrets.
func (c *Config) checkHeaders() error {
	for name, value := range c.Headers {
		switch {
		case !ValidHeaderName(name):
			return fmt.Errorf("gateway: %w", &stream.InvalidError{What: "header name", Got: name, Want: WantHeaderName})
		case value.File == "" && !validHeaderValue(value.Text):
			return fmt.Errorf("gateway: the value of header %q cannot be sent: want one line, not empty", name)
		}
	}
	return nil
}

// WantHeaderName describes what ValidHeaderName accepts.
const WantHeaderName = "the name of an HTTP header that is not the stream's own (such as Accept or Last-Event-ID)"

// ValidHeaderName reports whether a header of that name can be added to a request.
func ValidHeaderName(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Accept", "Accept-Encoding", "Cache-Control", "Connection", "Host", "Last-Event-Id", "Transfer-Encoding", "Content-Length":
		return false
	}
	const special = "!#$%&'*+-.^_`|~" // RFC 9110, section 5.6.2
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(special, r)) {
			return false
		}
	}
	return name != ""
}

// validHeaderValue reports whether a text is one line that can be sent.
func validHeaderValue(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' && text[i] != '\t' || text[i] == 0x7f {
			return false
		}
	}
	return text != ""
}

// transport returns one for streams.
func (c *Config) transport() *http.Transport {
	transport := client.NewTransport()
	transport.TLSClientConfig = c.TLS
	transport.ReadBufferSize = 64 << 10
	// A connection for each request: a connection whose stream stalled may be as
	// dead as the stream.
	transport.DisableKeepAlives = true
	if c.network != nil {
		transport.DialContext, transport.Proxy = c.network, nil
	}
	return transport
}

// client returns the client for requests. It follows no redirects, which could
// send credentials elsewhere.
func (c *Config) client() *http.Client {
	return &http.Client{
		Transport: c.transport(),
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("the answer is a redirect to %s: want the URL of the gateway itself", to.URL.Redacted())
		},
	}
}

// through names the proxy of the environment in a message; see adapter.Through.
func (c *Config) through() string {
	u, err := url.Parse(c.URL)
	if err != nil || c.network != nil {
		return ""
	}
	return adapter.Through(http.ProxyFromEnvironment(&http.Request{URL: u}))
}
