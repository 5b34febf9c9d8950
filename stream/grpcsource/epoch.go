package grpcsource

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// epochs translates between the upstream's names of its revision orders and
// ours. They are the same, so that every replica agrees, and so does a client
// that comes from there. Only for a narrowed watch ours says by which prefix:
// positions of one prefix must not be resumed under another.
type epochs struct {
	suffix   string // of ours; empty for a watch that is not narrowed
	fallback string // for an upstream that sends no positions
	watch    string
	prefix   string
}

func newEpochs(c *Config) epochs {
	e := epochs{watch: c.Watch, prefix: c.Prefix}
	if c.Prefix != "" {
		e.suffix = "~" + shortHash(c.Prefix)[:6]
	}
	e.fallback = shortHash(c.Address, c.Watch, c.Prefix)
	return e
}

// ours is the epoch that the Sink is told.
func (e *epochs) ours(upstream string) string {
	if upstream == "" {
		return e.fallback
	}
	return upstream + e.suffix
}

// resume returns the upstream's epoch and the position to ask for; empty if
// there is nothing that the upstream could resume from.
func (e *epochs) resume(from stream.Resume) (epoch, position string) {
	if from.Epoch == "" || from.Epoch == e.fallback {
		return "", ""
	}
	epoch, ok := strings.CutSuffix(from.Epoch, e.suffix)
	if !ok { // too long, so it was hashed: the upstream's name is lost
		return "", ""
	}
	p := stream.Position{Watch: e.watch, Epoch: epoch, Upserts: from.Revision, AsOf: from.Revision}
	return epoch, p.String()
}

func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}
