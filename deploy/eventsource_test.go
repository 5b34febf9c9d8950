//go:build servers

package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/stream"
)

// never is longer than any test: an EventSource does not notice silence.
const never = time.Hour

// eventSource is a client with the rules of a browser's EventSource: it comes back,
// with the last id, after the end of a stream and after an error of the network. An
// answer other than 200, or of another type, ends it permanently. It applies events
// when an id comes, and records what it received.
type eventSource struct {
	// Static after construction.
	name    string
	url     string
	client  *http.Client
	history *streamtest.History

	order *atomic.Int64 // of all flushes of the history
	cuts  atomic.Int64  // ends without a goodbye
	tally

	// Owned by run, read when it has ended.
	mark       *streamtest.Mark // the last id; nil: there is none
	state      streamtest.State // at the last id
	pending    []stream.Event   // since
	retry      time.Duration
	opened     int
	connection *streamtest.Connection
}

// run follows the stream until ctx ends or the client is dead.
func (c *eventSource) run(ctx context.Context) {
	c.state, c.retry = streamtest.State{}, 3*time.Second
	for {
		ending := c.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		c.lose(ending.Err)
		if refused := new(client.Problem); errors.As(ending.Err, &refused) || errors.Is(ending.Err, client.ErrInvalid) {
			c.dead.Store(&ending.Err)
			return
		}
		if ending.Goodbye == nil {
			c.cuts.Add(1)
		}
		if ending.Retry > 0 {
			c.retry = ending.Retry
		}
		select {
		case <-time.After(c.retry):
		case <-ctx.Done():
			return
		}
	}
}

// connect follows one stream to its end.
func (c *eventSource) connect(ctx context.Context) client.Ending {
	c.opened++
	c.pending = nil
	c.connection = &streamtest.Connection{
		// The client does not know which replica it is connected to.
		Client: c.name, Replica: fmt.Sprintf("that of connection %d of %s", c.opened, c.name), Slow: true,
		From: c.mark, Opened: time.Now(),
	}
	s := client.Stream{URL: c.url, Client: c.client, Handle: c.handle, Header: map[string]string{"Accept": "text/event-stream"}, StallAfter: never}
	if c.mark != nil {
		c.mark.State = c.state.Clone()
		c.connection.Begin = c.mark.State
		s.LastEventID = c.mark.Position.String()
	}
	ending := s.Run(ctx)
	if len(c.pending) > 0 {
		c.flush(nil, true)
	}
	c.connection.Read = time.Now()
	if ctx.Err() == nil {
		c.connection.Closed = c.connection.Read
	}
	c.history.Add(c.connection)
	return ending
}

func (c *eventSource) handle(e client.Event) error {
	if err := c.receive(e); err != nil {
		return err
	}
	if event, ok := eventOf(e); ok {
		c.pending = append(c.pending, event)
		if event.Type == stream.StatusChange && e.ID == "" && len(c.pending) == 1 {
			c.flush(nil, false) // it may stand alone
		}
	}
	if e.ID == "" {
		return nil
	}
	position, err := stream.ParsePosition(e.ID)
	if err != nil {
		return err
	}
	for _, event := range c.pending {
		c.state.Apply(event)
	}
	c.mark = &streamtest.Mark{Position: position}
	c.flush(c.mark, false)
	return nil
}

func (c *eventSource) flush(mark *streamtest.Mark, cut bool) {
	c.connection.Flushes = append(c.connection.Flushes, streamtest.Flush{
		Order: int(c.order.Add(1)), At: time.Now(), Events: c.pending, Mark: mark, Cut: cut,
		// The values at the replica are not known here.
		Head: 0, Horizon: ^uint64(0),
	})
	c.pending = nil
}

// eventOf returns the event of a watch; false: it is about the stream.
func eventOf(e client.Event) (stream.Event, bool) {
	for t := stream.Reset; t <= stream.StatusChange; t++ {
		if t.String() != string(e.Type) {
			continue
		}
		revision, _ := strconv.ParseUint(e.Revision, 10, 64) // 0 where the event has none
		state, _ := stream.ParseState(string(e.State))
		return stream.Event{
			Type: t, Watch: e.Watch, Reason: string(e.Reason), Revision: revision, Count: e.Count, Resumed: e.Resumed,
			Resource: stream.Resource{Key: e.Key, Revision: revision, Value: e.Value}, State: state, Since: e.Since,
		}, true
	}
	return stream.Event{}, false
}
