package credential

import (
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/watchtide/watchtide/access"
)

// Limits of failures: an address may fail so many times at once, and once more each
// time that failureEvery has passed.
const (
	failuresAtOnce = 10
	failureEvery   = 6 * time.Second
	maxFailing     = 20_000 // addresses that are remembered
)

// failures counts the failures of addresses. It is a table of fixed size, which has the
// addresses that failed last.
type failures struct {
	mu sync.Mutex
	// Guarded by mu.
	until *simplelru.LRU[netip.Addr, time.Time] // when all failures of an address are forgiven
}

func newFailures() *failures {
	until, err := simplelru.NewLRU[netip.Addr, time.Time](maxFailing, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &failures{until: until}
}

// network returns the address for which failures are counted: an IPv6 client can choose
// the last half of its address.
func network(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// blocked returns how long an address has to wait; zero: it does not.
func (f *failures) blocked(a netip.Addr) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, _ := f.until.Peek(network(a))
	return max(0, time.Until(until.Add(-(failuresAtOnce-1)*failureEvery)))
}

// add counts a failure. Failures of a blocked address do not count, so that it never waits
// longer than it was told.
func (f *failures) add(a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a = network(a)
	until, _ := f.until.Peek(a)
	if now := time.Now(); until.Before(now) {
		until = now
	}
	f.until.Add(a, until.Add(failureEvery))
}

// count counts an error if the client has caused it, and returns the error to answer with.
func (a *Authenticator) count(r *request, err error) error {
	var e *access.Refusal
	if !errors.As(err, &e) || e.Status != http.StatusUnauthorized || e.Expired != nil || e.Reason == access.Revoked {
		return err
	}
	if a.failures.blocked(r.client) > 0 {
		return a.tooMany(r)
	}
	a.failures.add(r.client)
	return err
}

func (a *Authenticator) tooMany(r *request) error {
	return access.Later(access.TooManyFailures, "too many invalid credentials came from this address: come back later", a.failures.blocked(r.client))
}
