package watch

import (
	"errors"
	"iter"
	"maps"

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
	// KeptLost means that the end of the log is missing. Readers may have more than there is.
	KeptLost
)

// beginJournal primes the watch with what the journal has. The upstream has confirmed nothing of it, so the watch
// is stale. The source goes on from there, as after an outage.
//
// Where the end of the log is missing, the log is that of another replica to the readers of the process before: the
// upstream sends what they have from after its end with the same revisions again. A source that counts revisions
// itself would give them out a second time, so it begins another order.
func (in *ingest) beginJournal() {
	j := in.config.Journal
	if j == nil {
		return
	}
	kept := j.Begin(in.log.Log)
	counts, isCounting := in.source.(stream.Continuing)
	if kept == KeptNothing || kept == KeptLost && isCounting {
		return
	}
	err := j.Recall(func(r log.Record, all log.RecordedEntries) error {
		if kept == KeptLost {
			r.Lost()
		}
		if r.SourceEpoch == "" && isCounting {
			r.SourceEpoch = r.Epoch // an older gateway has written it
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
	maps.Copy(in.aliases, j.Aliases())
	state := in.log.Snapshot()
	in.logger.Info("watch goes on with what the journal has", "revision", state.Revision(), "resources", state.Count())
	if isCounting {
		counts.Continue(in.place(), state.Resources())
	}
	if source, ok := in.source.(stream.Recognising); ok {
		source.Recognise(in.place(), state.Resources(), deletesOf(state))
	}
}

// deletesOf returns the deletes that are remembered.
func deletesOf(state log.Snapshot) iter.Seq[stream.Resource] {
	return func(yield func(stream.Resource) bool) {
		for e := range state.Entries(0) {
			if !e.Deleted() || !state.Counts(e) {
				continue
			}
			r := e.Resource()
			if r.Revision = e.Place(); !yield(r) {
				return
			}
		}
	}
}

// endJournal keeps the newest state.
func (in *ingest) endJournal() {
	if in.config.Journal != nil {
		in.config.Journal.End()
	}
}
