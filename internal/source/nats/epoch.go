package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// epochOf names the revision order of a bucket: the same on every replica, and
// another one for a bucket that was deleted and recreated, since the server
// records when a stream was created.
//
// A stream that is restored from a backup has the creation time of the backup.
// Where a reader detects that, restored distinguishes the orders; otherwise it is
// empty.
func epochOf(c *Config, created time.Time, restored, lot string) string {
	h := sha256.New()
	parts := []string{c.Domain, c.Bucket, c.Keys, strconv.FormatInt(created.UnixNano(), 10), restored, lot}
	if c.Values != stream.AnyValues {
		parts = append(parts, string(c.Values)) // the same revision has another value
	}
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
