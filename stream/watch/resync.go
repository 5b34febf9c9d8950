package watch

import (
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Resync says how a connection to the upstream caught up, or that it ended before.
type Resync struct {
	Began time.Time // when the connection was tried
	Ended time.Time
	// Reason is a key of Stats.Resyncs, or ResumeReason.
	Reason string
	// Received is how many resources and deletes came.
	Received int64
	// Resources is how many resources the watch has, and Revision its newest revision.
	Resources int
	Revision  uint64
	// Err is why the connection ended; nil: the watch has caught up.
	Err error
}

// ResumeReason is the reason of a Resync that needed no snapshot.
const ResumeReason = "resume"

// beginResync notes why a connection is made.
func (in *ingest) beginResync(resume stream.Resume) {
	in.resync = resyncReason(in.log.Snapshot().Primed(), false)
	if resume.Epoch != "" {
		in.resync = ResumeReason
	}
}

// endResync tells that the connection has caught up, or why it ended before.
func (in *ingest) endResync(err error) {
	if in.config.Resynced == nil || in.caughtUp {
		return
	}
	state := in.log.Snapshot()
	in.config.Resynced(Resync{
		Began: in.connected, Ended: time.Now(), Reason: in.resync, Received: in.reader.sink.received.Load(),
		Resources: state.Count(), Revision: state.Revision(), Err: err,
	})
}
