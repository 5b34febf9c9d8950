package watch

import (
	"fmt"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

func value(s string) []byte { return []byte(`{"v":"` + s + `"}`) }

func upsert(key string, revision uint64) log.Change {
	return log.Change{Resource: stream.Resource{Key: key, Revision: revision, Value: value(fmt.Sprint(key, revision))}}
}

// client applies events as a correct client does.
type client struct {
	state map[string]string
	log   []string
}

func (c *client) apply(b *log.Batch) {
	for e := range b.Events() {
		line := e.Type.String()
		switch e.Type {
		case stream.Reset:
			c.state = map[string]string{}
			line += " " + e.Reason
		case stream.Upsert:
			c.state[e.Resource.Key] = fmt.Sprintf("%d %s", e.Resource.Revision, e.Resource.Value)
			line += fmt.Sprintf(" %s@%d", e.Resource.Key, e.Resource.Revision)
		case stream.Delete:
			delete(c.state, e.Resource.Key)
			line += fmt.Sprintf(" %s@%d", e.Resource.Key, e.Resource.Revision)
		case stream.EndOfSnapshot:
			line += fmt.Sprintf(" %d count=%d resumed=%v", e.Revision, e.Count, e.Resumed)
		case stream.Bookmark:
			line += fmt.Sprintf(" %d skipped=%d", e.Revision, e.Skipped)
			if e.Horizon > 0 {
				line += fmt.Sprintf(" horizon=%d", e.Horizon)
			}
		case stream.StatusChange:
			line += " " + e.State.String()
		}
		c.log = append(c.log, line)
	}
}

// drain reads until there is nothing left.
func (c *client) drain(s *log.Subscription) {
	var b log.Batch
	for s.Next(&b) {
		c.apply(&b)
	}
}

func (c *client) take() []string {
	out := c.log
	c.log = nil
	return out
}
