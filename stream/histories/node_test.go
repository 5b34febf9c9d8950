package histories

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/log"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

const (
	heartbeat     = 5 * time.Second
	staleAfter    = time.Second
	behindTimeout = 10 * time.Second
	aheadWait     = time.Second
)

// node is one gateway of a tree. Owned by the goroutine of its history, except for
// the fields that links read.
type node struct {
	// Static after construction.
	name     string
	world    *world
	endpoint *streamtest.Replica // the upstream of a root; nil: the node follows others
	besides  *streamtest.Replica // the upstream of its other watch
	link     *link               // the links of any other node; nil for a root
	history  log.Retention
	maxBytes int64
	narrow   bool  // it follows a view
	kept     *kept // its journal; nil: it has none

	registry    *watch.Registry
	watch       *watch.Watch
	views       *views.Views
	linger      time.Duration         // of views
	second      *gatewaysource.Source // of the other watch, which joins and leaves
	joined      bool
	followed    bool             // others follow it
	stopped     bool             // it runs no more, or not yet again
	server      *http.Server     // of the listener
	guards      *gateway.Gateway // the second gateway, for principals; nil: none
	guardServer *http.Server

	listener      atomic.Pointer[listener] // nil: it cannot be followed now
	guardListener atomic.Pointer[listener] // of the second gateway
	lives         int
}

// replica names the node since its last start: it has no earlier state.
func (n *node) replica() string { return fmt.Sprint(n.name, "/", n.lives) }

func (n *node) start() error {
	n.registry = watch.NewRegistry()
	n.linger = oneOf(n.world.choices, time.Second, 30*time.Second)
	n.views = views.New(views.Config{Linger: n.linger})
	n.kept.open()
	source, err := n.source()
	if err != nil {
		return err
	}
	if n.watch, err = n.add("w", source); err != nil {
		return err
	}
	n.lives, n.stopped = n.lives+1, false
	if n.followed {
		return n.serve()
	}
	return nil
}

// source returns the source of the node. A root has the other watch from the
// start.
func (n *node) source() (stream.Source, error) {
	if n.endpoint != nil {
		_, err := n.add("x", n.besides)
		return n.endpoint, err
	}
	u, err := gatewaysource.New(gatewaysource.Config{URL: "http://" + n.link.host})
	if err != nil {
		return nil, err
	}
	if n.second, err = u.Source("x", nil); err != nil {
		return nil, err
	}
	n.joined = false
	return n.sourceAt(u)
}

// sourceAt returns the source of a node that follows others.
func (n *node) sourceAt(u *gatewaysource.Upstream) (stream.Source, error) {
	if n.narrow {
		return u.Source("w", n.world.parts[narrowest].definition)
	}
	return u.Source("w", nil)
}

// replace replaces the watch, as a reload of the configuration does: the node itself, and
// the other watch, go on.
func (n *node) replace() error {
	source := stream.Source(n.endpoint)
	if n.endpoint == nil {
		u, err := gatewaysource.New(gatewaysource.Config{URL: "http://" + n.link.host})
		if err != nil {
			return err
		}
		if source, err = n.sourceAt(u); err != nil {
			return err
		}
	}
	d := n.registry.Draft()
	d.Keep("x")
	w, err := d.Add(n.config("w", source))
	if err != nil {
		return err
	}
	d.Commit()
	n.watch = w
	n.lives++
	return nil
}

func (n *node) add(name string, s stream.Source) (*watch.Watch, error) {
	return n.registry.Add(n.config(name, s))
}

func (n *node) config(name string, s stream.Source) watch.Config {
	c := watch.Config{
		Name: name, SourceName: "upstream", Source: s, History: n.history,
		StaleAfter: staleAfter, BehindTimeout: behindTimeout,
		Backoff: watch.Backoff{Min: 100 * time.Millisecond, Max: 800 * time.Millisecond},
	}
	if name == "w" {
		c.MaxBytes = n.maxBytes
	}
	c.Journal = n.kept.watch(name)
	return c
}

func (n *node) serve() error {
	g, err := gateway.New(n.gateway())
	if err != nil {
		return err
	}
	n.server = listen(&n.listener, n.noting(g.Handler()))
	return nil
}

// listen serves requests in memory.
func listen(at *atomic.Pointer[listener], h http.Handler) *http.Server {
	l, s := newListener(), &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	at.Store(l)
	return s
}

// reachable makes the node accept connections, from now on also after a restart.
func (n *node) reachable() error {
	if n.listener.Load() != nil {
		return nil
	}
	n.followed = true
	return n.serve()
}

// guardReachable makes the second gateway of the node accept connections.
func (n *node) guardReachable() error {
	if n.guards != nil {
		return nil
	}
	c, err := n.guarded()
	if err != nil {
		return err
	}
	if n.guards, err = gateway.New(c); err != nil {
		return err
	}
	n.guardServer = listen(&n.guardListener, n.guards.Handler())
	return nil
}

// hasBeside reports whether the node has the other watch, and so has each that it may follow it
// from.
func (n *node) hasBeside() bool {
	if n.endpoint != nil {
		return true
	}
	return n.joined && !slices.ContainsFunc(n.link.targets, func(to *node) bool { return !to.hasBeside() })
}

// serving returns the watch of which the node serves a part.
func (n *node) serving(p *part) *watch.Watch {
	if p.beside {
		x, _ := n.registry.Watch("x")
		return x
	}
	return n.watch
}

// noting records requests that continue inside a snapshot or a catch-up: where
// deletes have no revision, the next node may have others.
func (n *node) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l, ok := links.Load(r.Host); ok {
			defer l.(*link).asked(n, r)()
		}
		next.ServeHTTP(w, r)
	})
}

// asked records a request for streams, until the function that it returns is called.
func (l *link) asked(n *node, r *http.Request) (answered func()) {
	id, watches := r.Header.Get("Last-Event-ID"), r.URL.Query()["watch"]
	n.world.say("%s asks %s for %s %q from %q", l.of, n.name, r.URL.Path, watches, id)
	l.mixed.CompareAndSwap(false, strings.Contains(id, "/"))
	if !slices.Contains(watches, "w") {
		return func() {}
	}
	l.served.Store(n)
	return func() { l.served.CompareAndSwap(n, nil) }
}

// mixed reports whether the node's state may have been made at two nodes, one
// after the other.
func (n *node) mixed() bool {
	if n.link == nil || n.world.shape.deletes == streamtest.OwnRevision {
		return false
	}
	return n.link.mixed.Load() || slices.ContainsFunc(n.link.targets, (*node).mixed)
}

// fits reports whether everything fits into the memory of the node, and of those
// that it follows.
func (n *node) fits() bool {
	if n.watch.Full() != nil {
		return false
	}
	return n.link == nil || !slices.ContainsFunc(n.link.targets, func(to *node) bool { return !to.fits() })
}

// truthful checks that a node that reports in_sync has the state of its upstream, and that it never had another one at the
// revision of a digest. Everything is at rest.
func (n *node) truthful() error {
	if times := n.watch.Stats().DigestMismatches; times > 0 {
		return fmt.Errorf("%s has had a state with another digest than the node that it follows %d times", n.name, times)
	}
	if n.link == nil || !n.fits() || n.watch.Status().State != stream.InSync {
		return nil
	}
	to := n.link.served.Load()
	if to == nil || !n.link.flows() {
		return nil
	}
	own, other := n.watch.Snapshot(), to.watch.Snapshot()
	if own.Epoch() == other.Epoch() && lacks(own, other) {
		return fmt.Errorf("%s reports that it is in sync at %d, and %s, which it follows, is at %d",
			n.name, own.Revision(), to.name, other.Revision())
	}
	return nil
}

// lacks reports whether a view lacks something newer that another one has.
func lacks(own, other log.Snapshot) bool {
	for r := range other.Resources() {
		if r.Revision > own.Revision() {
			return true
		}
	}
	return false
}

// stop ends the node with all its state, except for its journal.
func (n *node) stop() {
	n.stopped = true
	if n.listener.Swap(nil) != nil {
		_ = n.server.Close()
	}
	if n.guardListener.Swap(nil) != nil {
		_ = n.guardServer.Close()
		n.guards = nil
	}
	n.views.Close()
	n.registry.Close()
	n.kept.close()
	if n.endpoint != nil {
		n.endpoint.Restart()
	}
}

// join makes the other watch join the request with which the node follows the first
// one, or leave it.
func (n *node) join() error {
	n.joined = !n.joined
	if !n.joined {
		n.registry.Remove("x")
		return nil
	}
	_, err := n.add("x", n.second)
	return err
}
