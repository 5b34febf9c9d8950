package nats

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// fakeBucket is a bucket with a history of 1 that can be in states that are hard
// to reach with a real server. Access to its fields requires mu, unless nothing
// else runs.
type fakeBucket struct {
	mu       sync.Mutex
	now      state
	messages map[string]uint64 // newest sequence of each key
	foreign  string            // subject of the newest message, which is not that of a key
	err      error
	asked    []string
}

func newFakeBucket() *fakeBucket {
	return &fakeBucket{
		now:      state{created: time.Unix(1, 0), prefix: "$KV.b.", alone: true},
		messages: map[string]uint64{},
	}
}

// write adds a message for a key.
func (b *fakeBucket) write(key string) delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.last++
	b.messages[key] = b.now.last
	b.now.keys = len(b.messages)
	return delivery{
		key: key, sequence: b.now.last, time: int64(b.now.last), value: fmt.Appendf(nil, "%d", b.now.last),
	}
}

// vanish removes a key without a message.
func (b *fakeBucket) vanish(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.messages, key)
	b.now.keys = len(b.messages)
}

func (b *fakeBucket) state(context.Context) (state, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "state")
	return b.now, b.err
}

func (b *fakeBucket) keys(context.Context, string) (state, map[string]uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "keys")
	present := map[string]uint64{}
	for key := range b.messages {
		present["$KV.b."+key] = 1
	}
	return b.now, present, b.err
}

func (b *fakeBucket) newest(_ context.Context, subject string) (message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, "newest")
	var m message
	for _, sequence := range b.messages {
		m.sequence = max(m.sequence, sequence)
		m.subject = b.now.prefix + "a"
	}
	if b.foreign != "" && subject == allSubjects {
		m = message{sequence: b.now.last, subject: b.foreign}
	}
	return m, b.err
}

// queries returns the requests since the last call, and clears them.
func (b *fakeBucket) queries() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

// calls is a Sink that records its calls.
type calls struct {
	stream.PlainSink
	mu        sync.Mutex // guards the following fields
	lines     []string
	deletesTo uint64      // as of the last commit
	said      uint64      // last value given to DeletesCompleteTo
	conflated bool        // Conflated was called
	made      []time.Time // the arguments of SetTimestamp
}

func (c *calls) say(format string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
	return nil
}

func (c *calls) Reset(epoch string) error              { return c.say("reset") }
func (c *calls) Upsert(r stream.Resource) error        { return c.say("%s=%s@%d", r.Key, r.Value, r.Revision) }
func (c *calls) Delete(key string, at uint64) error    { return c.say("-%s@%d", key, at) }
func (c *calls) Status(s stream.State, r string) error { return c.say("status %v", s) }

// Conflated implements stream.SinkExtension.
func (c *calls) Conflated() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conflated = true
}

// SetTimestamp implements stream.SinkExtension.
func (c *calls) SetTimestamp(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, at)
}

func (c *calls) Commit(at uint64) error {
	c.mu.Lock()
	c.deletesTo = c.said
	c.mu.Unlock()
	return c.say("commit %d", at)
}

// DeletesCompleteTo implements stream.SinkExtension.
func (c *calls) DeletesCompleteTo(revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = revision
}

// RaiseHorizon implements stream.SinkExtension.
func (c *calls) RaiseHorizon(revision uint64) error { return c.say("horizon %d", revision) }

// deletesCompleteTo returns up to which sequence deletes are complete, as of the last commit.
func (c *calls) deletesCompleteTo() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deletesTo
}

// take returns the calls since the last time, and clears them.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}
