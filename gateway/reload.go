package gateway

import (
	"errors"
	"time"

	"github.com/watchtide/watchtide/internal/views"
)

// Reload puts another configuration into effect. It does not touch the open streams, which go
// on as they began, except those of principals who may now see something else of a watch that
// they follow, or whose credential is not accepted any more: these end. Digest also holds for open streams. Requests and streams
// that begin from now on, and a drain, use the new one. Registry, Logger, AfterRush,
// Pump, Profiles, Tracing, Instance, Version and Commit stay as they are, and so do the timeouts of
// connections and of HTTP/2, which Serve derives from WriteTimeout. If c has an invalid value, or Access
// where there was none or the reverse, Reload returns an error and changes nothing.
//
// The watches are not part of it; see watch.Draft.
func (g *Gateway) Reload(c Config) error {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	before := g.now.Load()
	c.Registry, c.Logger, c.AfterRush = before.cfg.Registry, before.cfg.Logger, before.cfg.AfterRush
	c.Pump, c.Profiles, c.Tracing = before.cfg.Pump, before.cfg.Profiles, before.cfg.Tracing
	c.Instance, c.Version, c.Commit = before.cfg.Instance, before.cfg.Version, before.cfg.Commit
	if err := c.check(); err != nil {
		return err
	}
	if (c.Access == nil) != (before.cfg.Access == nil) {
		return errAccessChanges
	}
	c = c.withDefaults()
	next, err := g.settings(c, before.deps.With(c.streams()), before.lookup.With(g.access(c)), before)
	if err != nil {
		return err
	}
	g.audit.SetOutput(c.audit())
	g.metrics.WatchRules(c.policy().Failures)
	g.digestsOff.Store(c.Digest == DigestOff)
	g.now.Store(next)
	close(before.replaced)
	g.authorizations.Reevaluate(next.evaluator())
	g.resize(c)
	return nil
}

// errAccessChanges refuses to turn access rules on or off: nobody knows whose the open streams
// are.
var errAccessChanges = errors.New("gateway.Config: Access cannot be added or removed while the gateway runs: restart it")

// resize changes the limits that all requests share.
func (g *Gateway) resize(c Config) {
	g.quotas.Reconfigure(c.quotas())
	g.admission.Reconfigure(c.limits(), c.spread())
	g.snapshots.Resize(c.SnapshotBudget)
	g.bodies.Bytes.Resize(c.BodyBudget)
	g.answers.Bytes.Resize(c.AnswerBudget)
	g.views.Reconfigure(views.Config(c.Views))
	g.pieces.Resize(c.CompressionCache)
	g.lists.Resize(c.listCache())
	g.doors.SetLimit(c.MaxConnections)
	g.handshakes.Reconfigure(c.MaxHandshakes, c.MaxHandshakesPerClient)
}

// reload is the outcome of an attempt to put a newer configuration into effect.
type reload struct {
	at     time.Time
	failed string // why it was not; empty: it was
}

// Reloaded records the outcome of an attempt to put a newer configuration into effect, for the
// metrics and for operators who ask /readyz. err says why the old one is kept; nil: it is not.
func (g *Gateway) Reloaded(err error) {
	r := &reload{at: time.Now()}
	if err != nil {
		r.failed = err.Error()
	}
	g.metrics.ConfigReloaded(r.at, err == nil)
	g.reload.Store(r)
}

// outdated returns why the newest configuration is not in effect; empty: it is, as far as is
// known.
func (g *Gateway) outdated() string {
	r := g.reload.Load()
	if r == nil || r.failed == "" {
		return ""
	}
	return "a newer configuration is not in effect, since " + r.at.UTC().Format(time.RFC3339) + ": " + r.failed
}
