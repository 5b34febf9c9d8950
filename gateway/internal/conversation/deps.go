package conversation

import (
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/deflate"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/snapshots"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
)

// Deps are the parts of the gateway that a stream uses.
//
// Static after construction.
type Deps struct {
	Instance     string
	Heartbeat    time.Duration
	WriteTimeout time.Duration
	AheadWait    time.Duration
	Retry        time.Duration
	MaxAge       time.Duration // ≤ 0: none
	MinRate      int64         // bytes per second; ≤ 0: none

	Log         *slog.Logger
	Metrics     *metrics.Metrics
	Admission   *admission.Controller
	Snapshots   *snapshots.Budget
	Subscribers *subscribers.List
	Pieces      *deflate.Cache // nil: streams are not compressed
}
