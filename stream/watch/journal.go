package watch

import (
	"errors"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// Journal keeps the log of one watch, so that another process can go on with it.
type Journal interface {
	// Begin begins to keep a log, and says what is kept from before. It is called once.
	Begin(*log.Log) Kept
	// Recall calls a function with what is kept, and returns its error. What it is given is valid
	// during the call.
	Recall(func(log.Record, log.RecordedEntries) error) error
	// Aliases are the names in the log of orders that the source broke.
	Aliases() map[string]string
	SetAliases(map[string]string)
	// End keeps the newest state of the log, to which nothing is added any more.
	End()
}

// Kept is what a journal has of a watch when a process begins.
type Kept int

const (
	// KeptNothing means that there is nothing, or nothing that can be trusted.
	KeptNothing Kept = iota
	// KeptWhole means that the log is there as it was when the process before ended.
	KeptWhole
	// KeptLost means that the end of the log is missing. Readers may have more than there is, and revisions
	// that the source counts itself may have been given out.
	KeptLost
)

// journalState is what run knows of the journal.
type journalState struct {
	journal Journal // nil: there is none
	kept    Kept
}

// beginJournal makes the watch what it was in the process before. Where the end of the log is missing,
// that is done only once the upstream cannot be reached: until then no reader is better off with it.
func (in *ingest) beginJournal() {
	if in.config.Journal == nil {
		return
	}
	in.journal = in.config.Journal
	in.kept = in.journal.Begin(in.log.Log)
	if in.kept == KeptWhole {
		in.recall()
	}
}

// recallLost is called at the end of a connection.
func (in *ingest) recallLost() {
	if in.kept == KeptLost && !in.log.Snapshot().Primed() && !counts(in.source) {
		in.recall()
	}
}

func counts(s stream.Source) bool {
	_, counts := s.(stream.Continuing)
	return counts
}

// recall primes the watch with what the journal has. The upstream has confirmed nothing of it, so the watch
// is stale, and the next snapshot is taken as after an outage.
func (in *ingest) recall() {
	lost := in.kept == KeptLost
	in.kept = KeptNothing
	err := in.journal.Recall(func(r log.Record, all log.RecordedEntries) error {
		if lost {
			r.Lost()
		}
		in.lost = r.Confirmed()
		in.log.PrepareStatus(stream.Status{State: stream.Stale, Since: in.lost, Reason: "as it was kept on the disk; the upstream has not confirmed it yet"})
		return in.log.Recall(r, all)
	})
	if err != nil {
		in.log.PrepareStatus(in.log.Status())
		if errors.Is(err, memory.ErrExceeded) {
			in.logger.Warn("the journal has a state that does not fit into the memory of the watch")
		}
		return
	}
	in.startOver = true
	for of, name := range in.journal.Aliases() {
		in.aliases[of] = name
	}
	state := in.log.Snapshot()
	in.logger.Info("watch goes on with what the journal has", "revision", state.Revision(), "resources", state.Count())
	if source, counts := in.source.(stream.Continuing); counts {
		source.Continue(stream.Resume{Epoch: state.Epoch(), Revision: state.Revision()}, state.Resources())
		in.sourceEpoch, in.startOver = state.Epoch(), false
	}
}

// endJournal keeps the newest state.
func (in *ingest) endJournal() {
	if in.journal != nil {
		in.journal.End()
	}
}
