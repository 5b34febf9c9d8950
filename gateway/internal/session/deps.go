package session

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// Settings are what the configuration says about streams.
type Settings struct {
	Heartbeat    time.Duration
	WriteTimeout time.Duration
	AheadWait    time.Duration
	Retry        time.Duration
	MaxAge       time.Duration // ≤ 0: none
	MinRate      int64         // bytes per second; ≤ 0: none
}

// Deps are the parts of the gateway that a stream uses. A stream keeps the Deps with which it
// began. All Deps of a gateway differ only in their settings.
//
// Static after construction.
type Deps struct {
	Settings
	Generation uint64 // another one for other settings
	Instance   string

	Log            *slog.Logger
	Metrics        *metrics.Metrics
	Series         *introspection.Recorder // nil: nothing is recorded
	Admission      *limits.Controller
	Snapshots      *limits.SnapshotBudget
	Subscribers    *introspection.List
	Pieces         *wire.Cache
	Authorizations *authz.Table     // nil: the gateway does not ask for credentials
	Quotas         *limits.Quotas   // nil: principals have no limits
	Tracing        *tracing.Tracing // nil: nothing is traced
	DigestsOff     *atomic.Bool     // whether clients get digests does not depend on when a stream began; nil: they do
}

// Leave ends the count of a stream, and removes its authorization, which may be nil.
func (d *Deps) Leave(as limits.Ref, p *authz.Authorization) {
	d.Quotas.Leave(p.Holder())
	d.Authorizations.Leave(p)
	d.Admission.Leave(as)
}

// HasDigests reports whether clients get digests now.
func (d *Deps) HasDigests() bool { return d.DigestsOff == nil || !d.DigestsOff.Load() }

// With returns the Deps with other settings, for streams that begin from now on.
func (d *Deps) With(s Settings) *Deps {
	if s == d.Settings {
		return d // streams of both can share a group
	}
	other := *d
	other.Settings = s
	other.Generation++
	return &other
}
