package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/view"
)

// Limits of the reviews of rights.
const (
	accessAtOnce = 16
	// maxStandings is how many pairs of a user and a resource are remembered, and maxAnswers how many
	// answers about namespaces for all of them together.
	maxStandings = 4096
	maxAnswers   = 500_000
	// maxUsersBytes is how much the users may take together.
	maxUsersBytes = 64 << 20
	// keptUnused is how long a standing is remembered that no request asks for.
	keptUnused = 5 * time.Minute
	// settles is how often streams are told of changes at most.
	settles = time.Second
)

// Defaults of RightsConfig.
const (
	DefaultRefresh          = 30 * time.Second
	DefaultReviewsPerSecond = 200
)

// RightsConfig is the configuration of Rights.
//
// Static after construction.
type RightsConfig struct {
	Server Server // required
	Log    *slog.Logger
	// Refresh is how often rights that are in use are looked at (DefaultRefresh).
	Refresh time.Duration
	// Hold is how long rights hold that the server does not confirm, since it does not answer
	// (DefaultHold).
	Hold time.Duration
	// ReviewsPerSecond is how many questions are asked per second at most (DefaultReviewsPerSecond).
	ReviewsPerSecond int
	// UserOf returns how the cluster knows a principal; false: it does not.
	UserOf func(*access.Principal) (User, bool)
}

// Resource is a collection of the cluster.
type Resource struct {
	Group, Name string
	// Namespace is the only one that is served; empty: all.
	Namespace string
	// LabelsAt is as in view.Params.
	LabelsAt string
}

// Rights knows which namespaces of a resource a user may list and watch. It looks again while requests
// ask.
//
// All methods may be called from any goroutine.
type Rights struct {
	config  RightsConfig // static after construction
	gate    *gate
	reviews Counts
	wake    chan struct{} // holds an element if there is something new to ask
	asked   chan struct{} // closed when a principal is asked about for the first time
	needed  chan struct{} // holds an element if the namespaces are needed at once
	changes chan struct{} // holds an element if what a user may read has changed

	mu sync.Mutex
	// Guarded by mu.
	standings  map[hash]*standing
	bytes      int             // of the users
	answers    int             // about namespaces
	namespaces map[string]bool // of the cluster; nil: not known yet
	generation int             // of the namespaces
	answered   time.Time       // when the server answered last
	failures   int             // since then
	resumeAt   time.Time       // when the server may be asked again after it did not answer
	warned     time.Time
	queues     queues
	rules      map[string]bool // namespaces whose rules have changed since the questions were looked through; "": all
}

// standing is what one user may read of one resource.
type standing struct {
	// Static after construction.
	key      hash
	user     User
	resource Resource

	// Guarded by the mutex of Rights.
	used       time.Time
	gone       bool      // it is not in standings any more
	whole      *question // about all namespaces, or the only one
	of         map[string]*question
	pending    int  // first questions about namespaces that have no answer yet
	begun      bool // they are asked
	generation int  // of the namespaces that were asked about
	full       bool // they are too many to be asked about

	known   bool             // what follows is
	all     bool             // everything may be read
	set     map[string]bool  // the namespaces that may be read, if not all
	shown   *view.Definition // of that; nil: nothing, or all
	until   time.Time        // when the first of the answers that it is made of ends, unless it is confirmed
	grownAt time.Time        // when something was added last
	lossAt  time.Time        // when it ends that all could be read, unless the namespaces are known by then
	settled chan struct{}    // closed when it becomes known
}

// NewRights returns Rights that know nothing yet. Nothing is asked before Run.
func NewRights(c RightsConfig) *Rights {
	c.Refresh, c.Hold, c.ReviewsPerSecond = cmp.Or(c.Refresh, DefaultRefresh), cmp.Or(c.Hold, DefaultHold), cmp.Or(c.ReviewsPerSecond, DefaultReviewsPerSecond)
	c.Hold = max(c.Hold, c.Refresh)
	return &Rights{
		config: c, gate: newGate(c.ReviewsPerSecond, accessAtOnce, accessAtOnce),
		wake: make(chan struct{}, 1), asked: make(chan struct{}), rules: map[string]bool{}, needed: make(chan struct{}, 1), changes: make(chan struct{}, 1),
		standings: map[hash]*standing{}, answered: time.Now(),
	}
}

// Errors of Await.
var (
	// ErrUnknown means that what the user may read is not known now.
	ErrUnknown = errors.New("the API server of the cluster has not said yet what you may read")
	// ErrFull means that it is remembered of too many users, or too many namespaces for them, already.
	ErrFull = errors.New("too many users of the cluster are connected")
)

// Extent is what a user may read of a resource. The zero value is nothing.
type Extent struct {
	All        bool
	Definition *view.Definition // of what may be read, if not all; nil: nothing may be
}

// Any reports whether anything may be read.
func (e Extent) Any() bool { return e.All || e.Definition != nil }

// User returns how the cluster knows a principal; false: it does not.
func (r *Rights) User(who *access.Principal) (User, bool) { return r.config.UserOf(who) }

// Of returns what a principal may read of a resource, as far as it is known; false: it is not.
func (r *Rights) Of(who *access.Principal, of Resource) (Extent, bool) {
	user, ok := r.config.UserOf(who)
	if !ok {
		return Extent{}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.standing(user, of)
	if err != nil || !s.known {
		return Extent{}, false
	}
	return Extent{s.all, s.shown}, true
}

// Await waits until it is known what a principal may read of a resource.
func (r *Rights) Await(ctx context.Context, who *access.Principal, of Resource) error {
	user, ok := r.config.UserOf(who)
	if !ok {
		return nil
	}
	r.mu.Lock()
	s, err := r.standing(user, of)
	if err != nil || s.known {
		r.mu.Unlock()
		return err
	}
	settled := s.settled
	r.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.full {
		return ErrFull
	}
	return ErrUnknown
}

// standing returns the standing of a user, which it makes if there is none. The mutex must be held.
func (r *Rights) standing(u User, of Resource) (*standing, error) {
	key, now := keyOf(u, of), time.Now()
	if s := r.standings[key]; s != nil {
		s.used = now
		return s, nil
	}
	size := bytesPerToken + u.size()
	full := func() bool { return len(r.standings) >= maxStandings || r.bytes+size > maxUsersBytes }
	if full() {
		r.dropUnused(now, r.config.Refresh) // a standing with an open stream was used since
	}
	if full() {
		return nil, ErrFull
	}
	select {
	case <-r.asked:
	default:
		close(r.asked)
	}
	s := &standing{key: key, user: u, resource: of, used: now, settled: make(chan struct{})}
	s.whole = &question{of: s, namespace: of.Namespace, due: now}
	r.standings[key] = s
	r.bytes += size
	r.queues.first(s.whole)
	signal(r.wake)
	return s, nil
}

// dropUnused drops the standings that no request has asked for lately. The mutex must be held.
func (r *Rights) dropUnused(now time.Time, unused time.Duration) {
	for _, s := range r.standings {
		if now.Sub(s.used) > unused {
			r.drop(s)
		}
	}
}

// drop forgets a standing. The mutex must be held.
func (r *Rights) drop(s *standing) {
	delete(r.standings, s.key)
	r.bytes -= bytesPerToken + s.user.size()
	s.gone = true
	r.queues.remove(s.whole)
	r.queues.forget(s)
	r.dropNamespaces(s)
}

// dropNamespaces forgets the answers about namespaces. The mutex must be held.
func (r *Rights) dropNamespaces(s *standing) {
	for _, q := range s.of {
		r.queues.remove(q)
	}
	r.answers -= len(s.of)
	s.of, s.pending, s.begun = nil, 0, false
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Stats returns the figures of the questions about rights.
func (r *Rights) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{Results: r.reviews.all(), AtOnce: r.gate.load(), Cached: len(r.standings) + r.answers}
}

// answer takes the answer to a question that was asked at a time. The mutex must be held.
func (r *Rights) answer(q *question, allowed bool, asked, now time.Time) {
	s, before := q.of, q.known && q.allowed
	first := !q.known
	q.known, q.allowed, q.at, q.due, q.failures = true, allowed, asked, now.Add(r.config.Refresh/2), 0
	if q.stale {
		q.stale, q.due = false, now
	}
	if s.gone || q != s.whole && s.of[q.namespace] != q {
		return
	}
	r.queues.again(q)
	switch {
	case q != s.whole:
		if q.first {
			q.first = false
			s.pending--
		}
	case allowed:
		r.dropNamespaces(s)
	case s.resource.Namespace == "":
		if before {
			s.lossAt = now.Add(r.config.Refresh / 2)
		}
		r.ask(s, now)
	}
	lacks := allowed && !s.all && (q == s.whole || !s.set[q.namespace]) // an answer that had ended is confirmed
	if first || before != allowed || !s.known || lacks {
		r.settle(s, now)
	}
}

// ask asks about the namespaces of the cluster that were not asked about. The mutex must be held.
func (r *Rights) ask(s *standing, now time.Time) {
	switch {
	case s.whole.allowed, !s.whole.known, s.resource.Namespace != "":
		return
	case r.namespaces == nil:
		signal(r.needed)
		return
	case s.begun && s.generation == r.generation:
		return
	}
	if s.full = !s.begun && r.answers+len(r.namespaces) > maxAnswers; s.full {
		return // what could be asked about is not all that may be read
	}
	if s.of == nil {
		s.of = map[string]*question{}
	}
	for _, name := range slices.Sorted(maps.Keys(r.namespaces)) {
		if s.of[name] != nil || r.answers >= maxAnswers {
			continue
		}
		q := &question{of: s, namespace: name, due: now, first: !s.begun}
		s.of[name] = q
		r.answers++
		if q.first {
			s.pending++
			r.queues.first(q)
		} else {
			r.queues.again(q)
		}
	}
	s.begun, s.generation = true, r.generation
}

// settle works out what may be read. The mutex must be held.
func (r *Rights) settle(s *standing, now time.Time) {
	all, set, until := r.allowed(s, now)
	switch {
	case now.Sub(r.answered) >= r.config.Hold:
		r.forget(s)
		return
	case set == nil && !all:
		if s.known && s.all && now.Before(s.lossAt) {
			s.until = s.lossAt
			return
		}
		r.forget(s)
		return
	}
	if s.grows(all, set) {
		// A user that may grant rights to others must not be able to restart their streams again and again.
		if at := s.grownAt.Add(r.config.Refresh / 2); now.Before(at) {
			all, set, until = false, s.common(all, set), earlier(until, at)
		} else {
			s.grownAt = now
		}
	}
	s.until = until
	if s.known && s.all == all && maps.Equal(s.set, set) {
		return
	}
	s.show(all, set)
	if !s.known {
		s.known, s.grownAt = true, now
		close(s.settled)
	}
	signal(r.changes)
}

// grows reports whether more may be read than before.
func (s *standing) grows(all bool, set map[string]bool) bool {
	if !s.known || s.all || all {
		return s.known && !s.all && all
	}
	for name := range set {
		if !s.set[name] {
			return true
		}
	}
	return false
}

// common returns what may be read both before and now.
func (s *standing) common(all bool, set map[string]bool) map[string]bool {
	both := maps.Clone(s.set)
	maps.DeleteFunc(both, func(name string, _ bool) bool { return !all && !set[name] })
	return both
}

// show sets what may be read.
func (s *standing) show(all bool, set map[string]bool) {
	s.all, s.set, s.shown = all, set, nil
	if all || len(set) == 0 {
		return
	}
	grant := view.Grant{Filter: "true", Namespaces: slices.Collect(maps.Keys(set))}
	if d, err := view.Parse(view.Params{Grants: []view.Grant{grant}, LabelsAt: s.resource.LabelsAt}); err == nil {
		s.shown = d
	}
}

// allowed returns what the answers allow that are young enough, and when that ends unless they are
// confirmed. The set is nil if it is not known: also if there was no time to confirm one of them.
func (r *Rights) allowed(s *standing, now time.Time) (all bool, set map[string]bool, until time.Time) {
	valid := func(q *question) bool {
		end := q.at.Add(r.config.Refresh + r.config.Hold)
		if !q.known || !q.allowed || !now.Before(end) {
			return false
		}
		until = earlier(until, end)
		return true
	}
	switch {
	case valid(s.whole):
		return true, nil, until
	case !s.whole.known || s.whole.allowed:
		return false, nil, until
	case s.resource.Namespace != "":
		return false, map[string]bool{}, until
	case !s.begun || s.pending > 0:
		return false, nil, until
	}
	set = map[string]bool{}
	for name, q := range s.of {
		switch {
		case !r.namespaces[name]:
		case valid(q):
			set[name] = true
		case q.known && q.allowed && q.failures < maxFailures:
			return false, nil, until
		}
	}
	return false, set, until
}

// forget ends that it is known what may be read. The mutex must be held.
func (r *Rights) forget(s *standing) {
	if !s.known {
		return
	}
	s.known, s.all, s.set, s.shown = false, false, nil, nil
	s.settled = make(chan struct{})
	signal(r.changes)
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
