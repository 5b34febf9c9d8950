package main

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// changes are the changes to the rows of one watch.
type changes struct {
	// Static after construction.
	server *server
	watch  string
	rows   int
	bytes  int
	value  func(i, changes, size int, now time.Time) []byte

	// Owned by run, and by fill before it.
	made int

	stop    context.CancelFunc // nil while nothing runs
	stopped chan struct{}
}

// fill writes rows, replacing earlier ones. The watch starts even with no rows.
func (s *server) fill(ctx context.Context, o order) error {
	value := row
	switch o.Kind {
	case "":
	case "node":
		value = node
	default:
		return fmt.Errorf("kind %q: want node, or nothing for service instances", o.Kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.changes[o.Watch]; c != nil {
		c.halt()
	}
	c := &changes{server: s, watch: o.Watch, rows: o.Rows, bytes: o.Bytes, value: value}
	s.changes[o.Watch] = c
	s.store.Writer(o.Watch)
	for i := range o.Rows {
		if err := c.put(ctx, i, 0); err != nil {
			return err
		}
	}
	return nil
}

// change changes so many rows of a filled watch in a second; 0: none.
func (s *server) change(watch string, perSecond int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.changes[watch]
	if c == nil || c.rows == 0 {
		return fmt.Errorf("watch %q is not filled", watch)
	}
	c.halt()
	if perSecond == 0 {
		return nil
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	c.stopped = make(chan struct{})
	go c.run(ctx, perSecond)
	return nil
}

// halt returns when nothing changes any longer.
func (c *changes) halt() {
	if c.stop == nil {
		return
	}
	c.stop()
	<-c.stopped
	c.stop = nil
}

// run makes as many changes as are due, a hundred times a second, so that a
// busy machine makes them late but not fewer.
func (c *changes) run(ctx context.Context, perSecond int) {
	defer close(c.stopped)
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	began, first := time.Now(), c.made
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		due := first + int(time.Since(began).Seconds()*float64(perSecond))
		for ; c.made < due; c.made++ {
			const step = 7919 // prime, so that every row has its turn
			if err := c.put(ctx, (c.made+1)*step%c.rows, c.made+1); err != nil {
				return // stopped: the store is in memory and rejects nothing else
			}
		}
	}
}

func (c *changes) put(ctx context.Context, i, version int) error {
	_, _, err := c.server.store.Writer(c.watch).Put(ctx, stream.PutRequest{Key: key(i), Value: c.value(i, version, c.bytes, time.Now())})
	return err
}
