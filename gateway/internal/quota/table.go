package quota

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/admission"
	"golang.org/x/time/rate"
)

// Limits are what one principal may have. 0 means any number.
type Limits struct {
	Streams           int // at the same time
	RequestsPerSecond int // on average over Burst
}

// Burst is the time over which requests are averaged: so many seconds' worth of them can come
// at once.
const Burst = 10 * time.Second

// mostRates is the number of principals, and of addresses, whose rate is kept: the most recent
// ones. The rate of any other starts from zero.
const mostRates = 20_000

// Table counts what principals have. Those without a credential are not counted as one: they
// have requests by their address, and streams as admission says.
//
// All methods may be called from any goroutine. Those of a nil *Table limit nothing.
type Table struct {
	limits atomic.Pointer[Limits]

	mu         sync.Mutex // guards the following fields
	streams    map[string]int
	principals *simplelru.LRU[string, *rate.Limiter]
	addresses  *simplelru.LRU[netip.Addr, *rate.Limiter]
}

// New returns a table in which nobody has anything.
func New(l Limits) *Table {
	t := &Table{streams: map[string]int{}, principals: newRates[string](), addresses: newRates[netip.Addr]()}
	t.limits.Store(&l)
	return t
}

func newRates[K comparable]() *simplelru.LRU[K, *rate.Limiter] {
	rates, err := simplelru.NewLRU[K, *rate.Limiter](mostRates, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return rates
}

// Reconfigure changes the limits from now on. Streams beyond them stay.
func (t *Table) Reconfigure(l Limits) { t.limits.Store(&l) }

// Enter counts a stream in, unless its principal has too many. Leave must follow.
func (t *Table) Enter(who *credential.Identity) *admission.Refusal {
	if !counts(t, who) {
		return nil
	}
	key, limit := who.Key(), t.limits.Load().Streams
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.streams[key]; limit > 0 && n >= limit {
		return &admission.Refusal{Reason: admission.RefusedPrincipal, Count: n, Limit: limit}
	}
	t.streams[key]++
	return nil
}

// Leave counts a stream out.
func (t *Table) Leave(who *credential.Identity) {
	if !counts(t, who) {
		return
	}
	key := who.Key()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams[key]--; t.streams[key] <= 0 {
		delete(t.streams, key)
	}
}

// counts reports whether streams are counted.
func counts(t *Table, who *credential.Identity) bool {
	return t != nil && who != nil && !who.IsAnonymous()
}

// Request counts a request. It returns how long its principal, or its address without one,
// has to wait before it is served; zero: not at all.
func (t *Table) Request(who *credential.Identity) time.Duration {
	limit := t.limits.Load().RequestsPerSecond
	if limit == 0 {
		return 0
	}
	now := time.Now()
	r := t.rateOf(who, limit).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// rateOf returns the rate of whoever makes a request, with the limit of now.
func (t *Table) rateOf(who *credential.Identity, limit int) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	var r *rate.Limiter
	if who.IsAnonymous() {
		r = recall(t.addresses, network(who.Address), limit)
	} else {
		r = recall(t.principals, who.Key(), limit)
	}
	if r.Limit() != rate.Limit(limit) {
		r.SetLimit(rate.Limit(limit))
		r.SetBurst(burst(limit))
	}
	return r
}

func recall[K comparable](rates *simplelru.LRU[K, *rate.Limiter], key K, limit int) *rate.Limiter {
	if r, ok := rates.Get(key); ok {
		return r
	}
	r := rate.NewLimiter(rate.Limit(limit), burst(limit))
	rates.Add(key, r)
	return r
}

func burst(limit int) int { return limit * int(Burst/time.Second) }

// network returns the address for which requests are counted: an IPv6 client can choose the
// last half of its address.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); err == nil && a.Is6() {
		return p.Addr()
	}
	return a
}

// Payer returns the client for which the room and the processors that a request uses are
// counted: its principal, or its address without one.
func Payer(who *credential.Identity, address admission.Client) admission.Client {
	if who == nil || who.IsAnonymous() {
		return address
	}
	return admission.ClientOfPrincipal(who.Key())
}
