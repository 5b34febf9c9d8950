package watch

import (
	"strings"

	"github.com/watchtide/watchtide/stream"
)

// cause is why a watch is not in sync: reason for every subscriber, detail for
// operators.
type cause struct{ reason, detail string }

// publicCause is a cause that may be shown to the public.
func publicCause(reason string) cause { return cause{reason: reason} }

// upstreamCause is the cause of a watch whose upstream reports that it is itself not
// in sync. The reason that the upstream gives may name its own upstream.
func upstreamCause(up stream.Status) cause {
	return cause{"the upstream says that it is " + up.State.String(), "the upstream says: " + up.Reason}
}

// maxDetail bounds a text of an upstream, in bytes. Logs, statuses, incidents and the
// answers to operators repeat it.
const maxDetail = 1 << 10

// upstreamText returns a text as it may be kept: an upstream wrote some of it, and some
// may be what Config.Hide hides. Every text of a source passes through here, and nowhere
// else into a watch.
func (in *ingest) upstreamText(text string) string { return upstreamText(&in.config, text) }

func upstreamText(c *Config, text string) string {
	text = c.Hide(text)
	const cut = "…"
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail-len(cut)], "") + cut
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// reasons are the texts for subscribers about a lost upstream, by the keys of
// Stats.Reconnects.
var reasons = map[string]string{
	"ended":       "the upstream ended the stream",
	"memory":      "too large for the memory ceiling",
	"stalled":     "the upstream stalled",
	"invalid":     "the upstream sent something invalid",
	"order":       "the upstream went back in revision",
	"behind":      "the upstream is behind what was served already",
	"unresumable": "the upstream cannot go on from the last revision",
	"error":       "the upstream is unreachable or refuses the watch",
}
