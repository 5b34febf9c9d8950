package limits

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/watchtide/watchtide/access/credential"
	"golang.org/x/time/rate"
)

// QuotaLimits are what one principal may have. 0 means any number.
type QuotaLimits struct {
	Streams           int // at the same time
	RequestsPerSecond int // on average over Burst
}

// Burst is the time over which requests are averaged. As many requests as the limit allows
// within that time can come at once.
const Burst = 10 * time.Second

// mostRates is how many principals and addresses have their rates kept: the most recent ones.
// Any other one starts from zero.
const mostRates = 20_000

// Quotas counts the streams and the requests of principals. Clients without a credential are not
// one principal: their requests are counted by address, and their streams by admission.
//
// All methods may be called from any goroutine. Those of a nil *Table limit nothing.
type Quotas struct {
	limits atomic.Pointer[QuotaLimits]

	mu         sync.Mutex // guards the following fields
	streams    map[string]int
	principals *simplelru.LRU[string, *rate.Limiter]
	addresses  *simplelru.LRU[netip.Addr, *rate.Limiter]
}

// NewQuotas returns an empty table.
func NewQuotas(l QuotaLimits) *Quotas {
	t := &Quotas{streams: map[string]int{}, principals: newRates[string](), addresses: newRates[netip.Addr]()}
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

// Reconfigure changes the limits. Open streams beyond them stay open.
func (q *Quotas) Reconfigure(l QuotaLimits) { q.limits.Store(&l) }

// Enter counts a stream. It returns a refusal if the principal has too many. Otherwise the
// caller must call Leave.
func (q *Quotas) Enter(who *credential.Identity) *Refusal {
	if !counts(q, who) {
		return nil
	}
	key, limit := who.Key(), q.limits.Load().Streams
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.streams[key]; limit > 0 && n >= limit {
		return &Refusal{Reason: RefusedPrincipal, Count: n, Limit: limit}
	}
	q.streams[key]++
	return nil
}

// Leave ends the count of a stream.
func (q *Quotas) Leave(who *credential.Identity) {
	if !counts(q, who) {
		return
	}
	key := who.Key()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.streams[key]--; q.streams[key] <= 0 {
		delete(q.streams, key)
	}
}

// counts reports whether streams are counted.
func counts(t *Quotas, who *credential.Identity) bool {
	return t != nil && who != nil && !who.IsAnonymous()
}

// Request counts a request. It returns how long its principal, or its address if it has none,
// must wait before it is served; zero: it is served now.
func (q *Quotas) Request(who *credential.Identity) time.Duration {
	limit := q.limits.Load().RequestsPerSecond
	if limit == 0 {
		return 0
	}
	now := time.Now()
	r := q.rateOf(who, limit).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// rateOf returns the rate of the principal of a request, with the current limit.
func (q *Quotas) rateOf(who *credential.Identity, limit int) *rate.Limiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	var r *rate.Limiter
	if who.IsAnonymous() {
		r = recall(q.addresses, network(who.Address), limit)
	} else {
		r = recall(q.principals, who.Key(), limit)
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

// Payer returns the client to which the memory and the processors that a request uses are
// charged: its principal, or its address if it has none.
func Payer(who *credential.Identity, address Client) Client {
	if who == nil || who.IsAnonymous() {
		return address
	}
	return ClientOfPrincipal(who.Key())
}
