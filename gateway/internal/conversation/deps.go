package conversation

import (
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/deflate"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/pass"
	"github.com/watchtide/watchtide/gateway/internal/quota"
	"github.com/watchtide/watchtide/gateway/internal/series"
	"github.com/watchtide/watchtide/gateway/internal/snapshots"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
	"github.com/watchtide/watchtide/gateway/internal/tracing"
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

	Log         *slog.Logger
	Metrics     *metrics.Metrics
	Series      *series.Recorder // nil: nothing is recorded
	Admission   *admission.Controller
	Snapshots   *snapshots.Budget
	Subscribers *subscribers.List
	Pieces      *deflate.Cache
	Passes      *pass.Table      // nil: the gateway does not ask for credentials
	Quotas      *quota.Table     // nil: principals have no limits
	Tracing     *tracing.Tracing // nil: nothing is traced
}

// Leave ends the count of a stream, and removes its pass, which may be nil.
func (d *Deps) Leave(as admission.Ref, p *pass.Pass) {
	d.Quotas.Leave(p.Holder())
	d.Passes.Leave(p)
	d.Admission.Leave(as)
}

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
