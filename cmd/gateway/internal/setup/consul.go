package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/client"
)

// consul looks for Consul where its command does.
func (e Environment) consul(told string) search {
	return func(ctx context.Context) *Source {
		address := cmp.Or(told, e.Getenv("CONSUL_HTTP_ADDR"))
		if address == "" && listens(ctx, e.Consul) {
			address = e.Consul
		}
		if address == "" {
			return nil
		}
		return e.askConsul(ctx, address)
	}
}

func (e Environment) askConsul(ctx context.Context, address string) *Source {
	s := &Source{Type: "consul", Where: address}
	if e.Getenv("CONSUL_HTTP_TOKEN") != "" {
		s.Notes = append(s.Notes, "The token goes into a file that only this user can read:", `token_file: "consul.token"`)
	}
	s.Watches = []Watch{healthOfConsul}
	base, err := e.consulURL(address)
	if err != nil {
		s.Problem = err
		return s
	}
	s.Fields = []string{"http_address: " + quoted(base.Host)}
	if base.Scheme == "https" {
		s.Fields = append(s.Fields, "tls: "+mapping("ca_file", e.Getenv("CONSUL_CACERT")))
	}
	keys, err := e.keysOfConsul(ctx, base)
	s.Watches, s.Problem = append(s.Watches, keys...), err
	return s
}

// healthOfConsul is the watch that every Consul has: it registers itself.
var healthOfConsul = Watch{Name: "health", Fields: "collection: health", Note: "all services; narrow it with service"}

// consulURL returns the URL at an address, which may be one or host:port.
func (e Environment) consulURL(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		scheme := "http://"
		if on, _ := strconv.ParseBool(e.Getenv("CONSUL_HTTP_SSL")); on {
			scheme = "https://"
		}
		address = scheme + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q: want host:port or a URL", address)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return u, nil
}

// maxConsulNames is how many bytes of names are read.
const maxConsulNames = 1 << 20

// keysOfConsul returns a watch for each first part of the keys, or one of all of them; none if there are
// no keys.
func (e Environment) keysOfConsul(ctx context.Context, base *url.URL) ([]Watch, error) {
	everything := []Watch{{Name: "keys", Fields: "collection: kv", Note: "all keys; narrow it with prefix"}}
	at := base.JoinPath("v1/kv/")
	at.RawQuery = "keys&separator=/"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return everything, err
	}
	if token := e.Getenv("CONSUL_HTTP_TOKEN"); token != "" {
		request.Header.Set("X-Consul-Token", token)
	}
	transport := client.NewTransport()
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, CheckRedirect: followNone}).Do(request)
	if err != nil {
		return everything, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound && response.Header.Get("X-Consul-Index") != "":
		return nil, nil
	case response.StatusCode != http.StatusOK:
		return everything, fmt.Errorf("%s answers %s", base.Redacted(), response.Status)
	}
	var names []string
	if err := json.NewDecoder(io.LimitReader(response.Body, maxConsulNames)).Decode(&names); err != nil {
		return everything, fmt.Errorf("%s does not answer as Consul does", base.Redacted())
	}
	var watches []Watch
	for _, name := range names {
		if !strings.HasSuffix(name, "/") || len(watches) == maxWatches {
			return everything, nil
		}
		watches = append(watches, Watch{Name: watchName(name, "keys"), Fields: "collection: kv, prefix: " + quoted(name)})
	}
	return watches, nil
}
