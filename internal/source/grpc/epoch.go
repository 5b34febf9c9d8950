package grpc

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// epochs translates between the upstream's names of its revision orders and
// ours. They are the same, so that every replica agrees. Only for a narrowed
// watch does ours include the prefix, since an upstream need not narrow:
// positions of one prefix must not be resumed under another.
type epochs struct {
	// Static after construction.
	watch    string
	suffix   string // of ours; empty for a watch that is not narrowed
	fallback string // for an upstream that sends no positions

	// Owned by Watch.
	upstream string // the newest epoch of the upstream; empty: it has none
}

func newEpochs(c *Config) epochs {
	e := epochs{watch: c.Watch, fallback: shortHash(c.Address, c.Watch, c.Prefix)}
	if c.Prefix != "" {
		e.suffix = "~" + shortHash(c.Prefix)[:6]
	}
	return e
}

// enter records the upstream's epoch and returns ours. "": it has none.
func (e *epochs) enter(upstream string) string {
	e.upstream = upstream
	return e.ours()
}

func (e *epochs) ours() string {
	if e.upstream == "" {
		return e.fallback
	}
	return stream.CanonicalEpoch(e.upstream + e.suffix)
}

// resume returns the position to request; false if there is none from which the
// upstream could resume.
func (e *epochs) resume(from stream.Resume) (p stream.Position, ok bool) {
	if from.Epoch == "" || from.Epoch == e.fallback {
		return p, false
	}
	if from.Epoch != e.ours() {
		upstream, ours := strings.CutSuffix(from.Epoch, e.suffix)
		if !ours || upstream == "" { // it was hashed: the upstream's name for it is unknown
			return p, false
		}
		e.upstream = upstream
	}
	return stream.Position{
		Watch: e.watch, Epoch: e.upstream, Upserts: from.Revision, AsOf: from.Revision, DeletesBehind: from.DeletesBehind,
	}, true
}

func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}
