package watch

import (
	"bytes"
	"errors"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// errDiffers is the reply to a digest that is not that of the newest state.
var errDiffers = errors.New("the upstream has another digest")

// onComparison compares the digest that the upstream has with that of the newest state.
func (in *ingest) onComparison(digest string) error {
	state := in.log.Snapshot()
	own := state.Digest().String()
	if own == digest {
		in.differs = false
		return nil
	}
	in.count.mismatches.Add(1)
	if !in.differs {
		in.logger.Warn("the upstream has another digest", "revision", state.Revision(), "digest", own, "upstream", in.upstreamText(digest))
	}
	in.differs = true
	return errDiffers
}

// contradicts reports whether a snapshot at a revision of an epoch shows that what is served is not what the upstream had
// at the revision of that. A resource that it lacks counts, although it may have been deleted since.
func contradicts(served log.Snapshot, epoch string, snapshot []stream.Resource, revision uint64) bool {
	if epoch != served.Epoch() || revision < served.Revision() {
		return false // it begins another order anyway, or is of a replica that is behind
	}
	has := make(map[string]*stream.Resource, len(snapshot))
	for i := range snapshot {
		has[snapshot[i].Key] = &snapshot[i]
	}
	for r := range served.Resources() {
		is := has[r.Key]
		if is == nil || is.Revision <= served.Revision() && (is.Revision != r.Revision || is.Encoding != r.Encoding || !bytes.Equal(is.Value, r.Value)) {
			return true
		}
		delete(has, r.Key)
	}
	for _, missing := range has {
		if missing.Revision <= served.Revision() {
			return true
		}
	}
	return false
}
