package introspection

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	askTimeout = 2 * time.Second
	// cachedFor is how old an answer may be.
	cachedFor = 2 * time.Second
	// maxAnswer is the size of the largest answer that is read, in bytes.
	maxAnswer = 3 << 20
	// maxCommas limits what is made of an answer: an empty watch is three bytes in it, and thirty
	// times as many in memory. A watch has ten commas, besides those in texts.
	maxCommas = 14 * maxWatches
)

// SiblingPath is where a replica says who it is.
const SiblingPath = "/v1/instance"

// Sibling is what was learned of one address.
type Sibling struct {
	Address  string    `json:"address"`
	Instance *Instance `json:"answer,omitempty"`
	Error    string    `json:"error,omitempty"`
	// Took is how long the answer took.
	Took float64 `json:"took_seconds"`

	client *http.Client
}

// Siblings are the replicas at the configured addresses. All operators share the answers.
//
// All methods may be called from any goroutine.
type Siblings struct {
	// Static after construction.
	self      string // the name of the instance that asks
	addresses []string
	clients   []*http.Client // by address
	token     string
	resolver  Resolver

	mu    sync.Mutex // guards the following fields; held while the replicas are asked
	at    time.Time
	known []byte // JSON
}

// NewSiblings returns the replicas at some valid addresses. self is the name of the instance that asks, whose
// address may be among them. They are not asked through a proxy.
func NewSiblings(self string, addresses []string, a SiblingAccess, r Resolver) *Siblings {
	s := &Siblings{self: self, addresses: addresses, token: a.Token, resolver: r}
	for _, address := range addresses {
		s.clients = append(s.clients, a.client(address))
	}
	return s
}

// Any reports whether any addresses are configured.
func (s *Siblings) Any() bool { return len(s.addresses) > 0 }

// Ask returns what the others say, or said within the last two seconds: a JSON list of Sibling, which
// must not be changed. It takes two seconds at most, and does not end with ctx, since others wait for
// the same. However many operators ask, there is one list, since it may be very large.
func (s *Siblings) Ask(ctx context.Context) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil && time.Since(s.at) < cachedFor {
		return s.known
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	others := slices.DeleteFunc(s.ask(ctx), func(o Sibling) bool { return o.Instance != nil && o.Instance.Instance == s.self })
	s.known, _ = json.Marshal(others) // never fails: everything in it can be marshalled
	s.at = time.Now()
	return s.known
}

// ask asks all replicas at the same time.
func (s *Siblings) ask(ctx context.Context) []Sibling {
	all := s.origins(ctx)
	var asked sync.WaitGroup
	for i := range all {
		if all[i].Error == "" {
			asked.Go(func() { s.askOne(ctx, &all[i]) })
		}
	}
	asked.Wait()
	return all
}

// origins returns a sibling for each address, and for each that a name stands for.
func (s *Siblings) origins(ctx context.Context) []Sibling {
	all := []Sibling{}
	for i, address := range s.addresses {
		origins, err := expand(ctx, s.resolver, address)
		if err != nil {
			all = append(all, Sibling{Address: address, Error: "its name cannot be resolved: " + err.Error()})
		}
		for _, origin := range origins {
			all = append(all, Sibling{Address: origin, client: s.clients[i]})
		}
	}
	return all[:min(len(all), MaxReplicas)]
}

func (s *Siblings) askOne(ctx context.Context, of *Sibling) {
	began := time.Now()
	i, err := s.fetch(ctx, of)
	of.Took = time.Since(began).Seconds()
	var failed *url.Error
	var distrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		of.Error = fmt.Sprintf("there was no answer within %s", askTimeout)
	case errors.As(err, &distrusted):
		of.Error = fmt.Sprintf("its certificate is not trusted: %v; want the authority that issued it in ca_file, and a name in it that is asked for", distrusted.Err)
	case errors.As(err, &failed):
		of.Error = failed.Err.Error() // the address is there already
	case err != nil:
		of.Error = err.Error()
	default:
		of.Instance = i
	}
}

// fetch reads what one replica says.
func (s *Siblings) fetch(ctx context.Context, of *Sibling) (*Instance, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, of.Address+SiblingPath, nil)
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := of.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if err := acceptable(answer); err != nil {
		return nil, err
	}
	return read(answer)
}

// read returns what an acceptable answer says.
func read(answer *http.Response) (*Instance, error) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case bytes.Count(body, []byte(",")) > maxCommas:
		return nil, errors.New("the answer has too many elements")
	}
	var i Instance
	if err := json.Unmarshal(body, &i); err != nil {
		return nil, fmt.Errorf("the answer is no instance: %w", err)
	}
	if err := i.check(); err != nil {
		return nil, fmt.Errorf("the answer is wrong: %w", err)
	}
	return &i, nil
}

// acceptable returns why an answer is not read.
func acceptable(answer *http.Response) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("the answer is %d: want a token or a client certificate of an operator of that replica", code)
	case code == http.StatusBadRequest && answer.Request.URL.Scheme == "http":
		return errors.New("the answer is 400, as from a listener with TLS: want an address that begins with https then")
	case code >= 300 && code < 400:
		return fmt.Errorf("the answer is %d, a redirect, which is not followed: want the address of an operations listener", code)
	case code != http.StatusOK:
		return fmt.Errorf("the answer is %d: want the address of an operations listener", code)
	case kind != "application/json":
		return fmt.Errorf("the answer is %q, not JSON: want the address of an operations listener", kind)
	}
	return nil
}
