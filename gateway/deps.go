package gateway

import (
	"log/slog"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/admission"
	"github.com/watchtide/watchtide/gateway/internal/deflate"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/snapshots"
	"github.com/watchtide/watchtide/gateway/internal/subscribers"
)

// deps is what a stream needs of the gateway that serves it.
//
// Static after construction.
type deps struct {
	instance     string
	heartbeat    time.Duration
	writeTimeout time.Duration
	aheadWait    time.Duration
	retry        time.Duration
	maxAge       time.Duration // ≤ 0: none
	minRate      int64         // bytes per second; ≤ 0: none

	log         *slog.Logger
	metrics     *metrics.Metrics
	admission   *admission.Controller
	snapshots   *snapshots.Budget
	subscribers *subscribers.List
	pieces      *deflate.Cache // nil: streams are not compressed
}
