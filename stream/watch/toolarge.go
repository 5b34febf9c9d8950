package watch

import (
	"context"
	"errors"
	"time"

	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
)

// memoryPatience is how many times longer than after another failure a watch waits
// that does not fit into its memory: each attempt costs the upstream the better part
// of a snapshot.
const memoryPatience = 10

// noteTooLarge records that a connection, which has ended with err, was ended
// because the watch does not fit into its memory, and returns that as the error.
//
// What was committed stays as it is, and is stale. The next connection begins from
// nothing: continuing from the last commit would bring the same changes that do not
// fit, even if the upstream has shrunk since.
func (in *ingest) noteTooLarge(err error) error {
	why := in.reader.evicted
	if why == nil && !errors.As(context.Cause(in.reader.sink.ctx), &why) && !errors.As(err, &why) {
		return err
	}
	in.tooLarge.Store(why)
	return why
}

// full returns why the watch takes no more subscribers.
func (o *published) full() error {
	if why := o.tooLarge.Load(); why != nil {
		return why
	}
	return nil
}

// onSqueezed discards what is being loaded, or that and the log, if all watches together
// hold more than they may and no other watch holds more. The log would grow again for as
// long as the upstream is this large.
func (in *ingest) onSqueezed() {
	if why := in.account.StagedExceeds(); why != nil {
		in.evict(why)
	}
	why := in.account.LogExceeds()
	if why == nil {
		return
	}
	in.evict(why)
	in.tooLarge.Store(why)
	in.log.Discard(stream.Status{State: stream.Priming, Since: time.Now(), Reason: reasons["memory"], Detail: why.Error()})
}

// evict ends the connection under way because memory is used up.
func (in *ingest) evict(why *memory.Error) {
	if in.reader != nil {
		in.reader.evicted = why
		in.reader.cancel(why)
	}
}
