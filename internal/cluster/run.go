package cluster

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// retry is how long a question waits that the server did not answer.
	retry = 2 * time.Second
	// maxNamespaces is how many namespaces are asked about, and listedNamespaces how many are read.
	maxNamespaces    = 10_000
	listedNamespaces = 5 * maxNamespaces
	// listWait is how long reading them may take.
	listWait = 30 * time.Second
	// followAgain is how long after its begin rules are followed again that could not be, at most.
	followAgain = time.Minute
	// maxChanged is how many namespaces with changed rules are told apart.
	maxChanged = 1000
)

// Run asks until the context ends. It calls changed when what a user may read has changed, and from
// time to time, so that open streams ask again for what they show: standings that no request asks for are forgotten.
func (r *Rights) Run(ctx context.Context, changed func()) {
	var running sync.WaitGroup
	running.Go(func() { r.notify(ctx, changed) })
	running.Go(func() { r.list(ctx) })
	running.Go(func() { r.follow(ctx) })
	for ctx.Err() == nil {
		if !r.awaitDue(ctx) || r.gate.enter(ctx) != nil {
			continue
		}
		q := r.next()
		if q == nil {
			r.gate.leave()
			continue
		}
		running.Go(func() {
			defer r.gate.leave()
			r.review(ctx, q)
		})
	}
	running.Wait()
}

// next returns the next question; nil: none is due.
func (r *Rights) next() *question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queues.pick(time.Now())
}

// awaitDue waits until a question may be due. It returns false if it is not certain that one is.
func (r *Rights) awaitDue(ctx context.Context) bool {
	r.mu.Lock()
	now := time.Now()
	at, ok := r.queues.next(now)
	if r.resumeAt.After(at) {
		at = r.resumeAt
	}
	r.mu.Unlock()
	if ok && !at.After(now) {
		return true
	}
	wait := time.Minute
	if ok {
		wait = at.Sub(now)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
	return false
}

// review asks one question. To list is not enough: a stream is a watch too.
func (r *Rights) review(ctx context.Context, q *question) {
	asked, allowed := time.Now(), true
	var err error
	for _, verb := range []string{"list", "watch"} {
		if verb == "watch" {
			err = r.gate.pace.Wait(ctx)
		}
		if err == nil {
			allowed, err = r.config.Server.ReviewAccess(ctx, q.of.user, Attributes{verb, q.of.resource.Group, q.of.resource.Name, q.namespace})
		}
		if err != nil || !allowed {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer signal(r.wake) // the question is in a queue again
	now := time.Now()
	switch {
	case err != nil:
		if ctx.Err() == nil {
			r.failed("rights in the cluster could not be looked at", err, now)
		}
		r.postpone(q, now)
		return
	case allowed:
		r.reviews.add(Allowed)
	default:
		r.reviews.add(Refused)
	}
	r.answered, r.failures = now, 0
	r.answer(q, allowed, asked, now)
}

// failed notes that the server did not answer. The mutex must be held.
func (r *Rights) failed(what string, err error, now time.Time) {
	r.reviews.add(Failed)
	if r.failures++; r.failures >= maxFailures || retryAfter(err) > 0 {
		r.resumeAt = now.Add(min(max(pause, retryAfter(err)), time.Minute))
	}
	if now.Sub(r.warned) >= time.Minute {
		r.warned = now
		r.config.Log.Warn(what+": what was allowed holds for a while", "error", err.Error())
	}
}

// postpone asks a question later. The mutex must be held.
func (r *Rights) postpone(q *question, now time.Time) {
	s := q.of
	if s.gone || q != s.whole && s.of[q.namespace] != q {
		return
	}
	if now.Sub(r.answered) < 2*retry {
		q.failures++
	}
	if q.due = now.Add(retry); !q.known && (q.first || q == s.whole) && r.failures < maxFailures {
		r.queues.first(q)
		return
	}
	r.queues.again(q)
}

// notify tells of changes, at most once in a while, and forgets standings that no request asks for.
func (r *Rights) notify(ctx context.Context, changed func()) {
	tick := time.NewTicker(settles)
	defer tick.Stop()
	told := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		r.reconsider(time.Now())
		r.sweep(time.Now())
		select {
		case <-r.changes:
		default:
			if time.Since(told) < r.config.Refresh/2 {
				continue
			}
		}
		told = time.Now()
		changed()
	}
}

// sweep settles what has ended by itself, and drops standings that no request asks for.
func (r *Rights) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent := now.Sub(r.answered) >= r.config.Hold
	for _, s := range r.standings {
		if s.known && (silent || !s.until.IsZero() && !now.Before(s.until)) {
			r.settle(s, now)
		}
	}
	r.dropUnused(now, max(keptUnused, 2*r.config.Refresh))
}

// follow follows the rules of the cluster from the first question on. Where they cannot be followed, changes are
// noticed when a question is asked again.
func (r *Rights) follow(ctx context.Context) {
	select {
	case <-r.asked:
	case <-ctx.Done():
		return
	}
	var warned atomic.Bool
	for ctx.Err() == nil {
		began := time.Now()
		err := r.config.Server.FollowRules(ctx, func(namespace string) {
			warned.Store(false)
			r.changed(namespace)
		})
		if ctx.Err() != nil {
			return
		}
		if !warned.Swap(true) {
			r.config.Log.Warn("the rules of the cluster cannot be followed, so a change of them takes effect within refresh: want list and watch on roles, rolebindings, clusterroles and clusterrolebindings of rbac.authorization.k8s.io",
				"refresh", r.config.Refresh.String(), "error", err.Error())
		}
		timer := time.NewTimer(followAgain - min(time.Since(began), followAgain-retry))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// changed notes that the rules of a namespace have changed; empty: of all.
func (r *Rights) changed(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rules) >= maxChanged {
		clear(r.rules)
		namespace = ""
	}
	r.rules[namespace] = true
}

// reconsider has the questions asked again whose rules have changed.
func (r *Rights) reconsider(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rules) == 0 {
		return
	}
	for _, s := range r.standings {
		for _, q := range s.of {
			r.again(q, now)
		}
		r.again(s.whole, now)
	}
	clear(r.rules)
	signal(r.wake)
}

// again has a question asked again if the rules of its namespace have changed. The mutex must be held.
func (r *Rights) again(q *question, now time.Time) {
	switch {
	case !r.rules[""] && !r.rules[q.namespace]:
	case q.queue == nil:
		q.stale = true
	case q.queue != &r.queues.fresh && q.due.After(now):
		q.due = now
		r.queues.again(q)
	}
}

// list lists the namespaces of the cluster while a standing needs them.
func (r *Rights) list(ctx context.Context) {
	for ctx.Err() == nil {
		wait := r.config.Refresh / 2
		if r.needsNamespaces() && !r.listOnce(ctx) {
			wait = retry
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.needed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// needsNamespaces reports whether a user may not read all namespaces of a resource.
func (r *Rights) needsNamespaces() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.standings {
		if s.whole.known && !s.whole.allowed && s.resource.Namespace == "" {
			return true
		}
	}
	return false
}

// listOnce lists the namespaces. false: there was no answer.
func (r *Rights) listOnce(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	names, err := r.config.Server.Namespaces(within, listedNamespaces)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			r.failed("the namespaces of the cluster could not be listed", err, time.Now())
		}
		return false
	}
	r.found(names)
	return true
}

// found takes the namespaces that there are. Of too many, those that were known before stay: a user that may
// create namespaces must not displace others. The mutex must be held.
func (r *Rights) found(names []string) {
	now, there := time.Now(), map[string]bool{}
	for _, known := range []bool{true, false} {
		for _, name := range names {
			if r.namespaces[name] == known && len(there) < maxNamespaces {
				there[name] = true
			}
		}
	}
	if r.namespaces != nil && maps.Equal(there, r.namespaces) {
		return
	}
	r.namespaces = there
	r.generation++
	for _, s := range r.standings {
		for name, q := range s.of {
			if !there[name] {
				r.dropQuestion(s, q)
			}
		}
		r.ask(s, now)
		r.settle(s, now)
	}
	signal(r.wake)
}

// dropQuestion forgets a question about a namespace. The mutex must be held.
func (r *Rights) dropQuestion(s *standing, q *question) {
	r.queues.remove(q)
	delete(s.of, q.namespace)
	r.answers--
	if q.first {
		s.pending--
	}
}
