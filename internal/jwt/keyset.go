package jwt

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/access"
)

const (
	refreshEvery = 5 * time.Minute
	// retryEvery is the least time between requests that a failure or an unknown key
	// causes.
	retryEvery = 10 * time.Second
	// goodFor is how long keys are used while the provider does not answer.
	goodFor = 24 * time.Hour
	// maxWaiting is the maximum number of requests that wait for one answer of the provider.
	maxWaiting = 64
	// maxMissing is the maximum number of remembered names of keys that the provider does not
	// have.
	maxMissing = 256
)

var errNotAsked = errors.New("it has not been asked yet")

// keySet has the keys of one issuer. Only run connects to the provider.
type keySet struct {
	// Static after construction.
	provider *provider // nil: the keys never change
	log      *slog.Logger
	wanted   chan struct{} // tells run to make an attempt

	// Atomic.
	current atomic.Pointer[fetched]

	mu sync.Mutex
	// Guarded by mu.
	next    *attempt // that is wanted or running; nil: none is
	running bool
	asked   time.Time       // when an unknown key last caused an attempt
	ended   time.Time       // when the last attempt ended; zero: there was none, or it was cut off
	failure error           // of the last attempt
	missing map[string]bool // names of keys that the last answer did not have
}

// fetched are keys, where the provider signs users in, and when that was fetched. Static after
// construction.
type fetched struct {
	keys      *keys
	endpoints endpoints
	at        time.Time
}

// attempt is one request to the provider.
type attempt struct {
	done    chan struct{} // closed after err is set
	err     error
	waiting int // guarded by the mutex of the key set
}

func fixedKeys(k *keys) *keySet {
	s := &keySet{}
	s.current.Store(&fetched{keys: k})
	return s
}

func remoteKeys(p *provider, log *slog.Logger) *keySet {
	return &keySet{provider: p, log: log, wanted: make(chan struct{}, 1), failure: errNotAsked, missing: map[string]bool{}}
}

// now returns the keys; nil: there are none, or they are too old.
func (s *keySet) now() *keys {
	if f := s.latest(); f != nil {
		return f.keys
	}
	return nil
}

// latest returns what was fetched last; nil: nothing was, or it is too old.
func (s *keySet) latest() *fetched {
	f := s.current.Load()
	if f == nil || s.provider != nil && time.Since(f.at) > goodFor {
		return nil
	}
	return f
}

// has reports whether a key is still in the set. known is false if there is no set.
func (s *keySet) has(d digest) (found, known bool) {
	k := s.now()
	if k == nil {
		return false, false
	}
	return k.digests[d], true
}

// ready returns why there are no keys.
func (s *keySet) ready() error {
	if s.now() != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

var (
	errUnknownKey = access.NewRefusal(access.UnknownKey, "the token is signed with a key that its issuer does not have")
	errNoKeys     = "the keys of the token's issuer are not known at the moment"
	errMaybeLater = "the token is signed with a key that is not known yet"
)

// find returns the keys that may have signed a token. For an unknown key it fetches the key
// set, within limits. The error is a *access.Refusal.
func (s *keySet) find(ctx context.Context, id, algorithm string) ([]*key, error) {
	if found, err := s.known(id, algorithm); found != nil || err != nil {
		return found, err
	}
	failed, err := s.await(ctx, id)
	if err != nil {
		return nil, err
	}
	if found, err := s.known(id, algorithm); found != nil || err != nil {
		return found, err
	}
	if failed != nil {
		return nil, access.Later(access.KeySetUnavailable, errNoKeys, retryEvery)
	}
	s.miss(id)
	return nil, errUnknownKey
}

// await waits for the next attempt, within limits. failed is its error. The other error is a
// *access.Refusal: there was no attempt, or it takes too long.
func (s *keySet) await(ctx context.Context, id string) (failed, err error) {
	a, err := s.ask(id)
	if err != nil {
		return nil, err
	}
	defer s.leave(a)
	timeout := time.NewTimer(fetchTimeout + time.Second)
	defer timeout.Stop()
	select {
	case <-a.done:
		return a.err, nil
	case <-ctx.Done():
		return nil, access.Later(access.KeySetUnavailable, errNoKeys, 0)
	case <-timeout.C:
		return nil, access.Later(access.KeySetUnavailable, errNoKeys, retryEvery)
	}
}

// known returns the keys that may have signed a token; none if it could be signed with a
// key that is not known yet.
func (s *keySet) known(id, algorithm string) ([]*key, error) {
	k := s.now()
	if k == nil {
		return nil, nil
	}
	if found := k.candidates(id, algorithm); len(found) > 0 {
		return found, nil
	}
	if s.provider == nil || id == "" || len(k.byID[id]) > 0 {
		return nil, errUnknownKey
	}
	return nil, nil
}

// ask returns the attempt to wait for: the running one, or a new one.
func (s *keySet) ask(id string) (*attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		if err := s.tooSoon(id); err != nil {
			return nil, err
		}
		if !s.ended.IsZero() {
			s.asked = time.Now() // else run is about to make an attempt anyway
		}
		s.next = &attempt{done: make(chan struct{})}
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
	if s.next.waiting == maxWaiting {
		return nil, access.Later(access.KeySetUnavailable, errMaybeLater, retryEvery)
	}
	s.next.waiting++
	return s.next, nil
}

// tooSoon returns the answer without a new attempt, if the last one was a moment ago.
func (s *keySet) tooSoon(id string) error {
	last := s.asked
	if s.failure != nil && s.ended.After(last) {
		last = s.ended // a slow provider is given a pause too
	}
	after := time.Until(last.Add(retryEvery))
	switch {
	case after <= 0:
		return nil
	case s.failure != nil:
		return access.Later(access.KeySetUnavailable, errNoKeys, after)
	case s.missing[id]:
		return errUnknownKey
	}
	return access.Later(access.KeySetUnavailable, errMaybeLater, after)
}

func (s *keySet) leave(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.waiting--
}

// miss records that the provider does not have a key.
func (s *keySet) miss(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missing) < maxMissing {
		s.missing[id] = true
	}
}

// run refreshes the keys until the context ends.
func (s *keySet) run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(s.pause())
		select {
		case <-ctx.Done():
		case <-timer.C:
			s.refresh(ctx)
		case <-s.wanted:
			s.refresh(ctx)
		}
		timer.Stop()
	}
}

// pause returns how long to wait before the next attempt.
func (s *keySet) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended.IsZero():
		return 0
	case s.failure != nil:
		return retryEvery
	}
	return refreshEvery - rand.N(refreshEvery/10)
}

// refresh makes one attempt. It does nothing if another one is running, which is
// possible for a moment while the configuration is reloaded.
func (s *keySet) refresh(ctx context.Context) {
	a := s.begin()
	if a == nil {
		return
	}
	f, err := s.provider.fetch(ctx)
	if err == nil {
		s.current.Store(f)
	}
	s.end(ctx, a, err)
}

func (s *keySet) begin() *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return nil
	}
	if s.next == nil {
		s.next = &attempt{done: make(chan struct{})}
	}
	select {
	case <-s.wanted: // by a request that waits for this attempt
	default:
	}
	s.running = true
	return s.next
}

func (s *keySet) end(ctx context.Context, a *attempt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(ctx, err)
	s.running, s.next, s.failure, s.ended = false, nil, err, time.Now()
	if err == nil {
		clear(s.missing)
	} else if ctx.Err() != nil {
		s.ended = time.Time{} // so that the next run begins at once
	}
	a.err = err
	close(a.done)
}

// report logs when a provider stops answering, and when it answers again.
func (s *keySet) report(ctx context.Context, err error) {
	failing := s.failure != nil && !errors.Is(s.failure, errNotAsked)
	switch {
	case s.log == nil || ctx.Err() != nil:
	case err != nil && !failing:
		s.log.Warn("the keys of an issuer of tokens cannot be read", "issuer", s.provider.issuer, "error", err.Error())
	case err == nil && failing:
		s.log.Info("the keys of an issuer of tokens can be read again", "issuer", s.provider.issuer)
	}
}
