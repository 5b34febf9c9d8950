package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Source follows one bucket. It is a [stream.Source].
//
// Watch is called by one goroutine at a time.
type Source struct {
	// Static after construction.
	config Config

	// Owned by Watch.
	checkpoint *checkpoint // nil: nothing yet
	restored   string      // see epochOf; of the bucket with this creation time:
	made       time.Time
	lot        string // see epochOf; random for each reader that starts from nothing, and for each process
}

var (
	_ stream.Source            = (*Source)(nil)
	_ stream.DeletesUnnumbered = (*Source)(nil)
	_ stream.Recognising       = (*Source)(nil)
)

// New returns a Source; it connects when Watch is called. The error reports an
// invalid configuration.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.setDefaults()
	return &Source{config: c}, nil
}

// DeletesUnnumbered implements [stream.DeletesUnnumbered]: a key that vanishes
// without a message has no revision.
func (s *Source) DeletesUnnumbered() bool { return true }

// Recognise implements [stream.Recognising].
func (s *Source) Recognise(at stream.Resume, resources, deletes iter.Seq[stream.Resource]) {
	s.checkpoint = recall(at, resources, deletes)
}

// Watch implements [stream.Source].
func (s *Source) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	conn, err := s.config.connect(ctx, end, func(bytes int64) { sink.Charge(bytes) })
	if err != nil {
		return err
	}
	defer conn.close()
	defer end(nil) // before close: it waits for those that wait for the context
	return s.ended(ctx, conn, s.follow(ctx, conn, resume, sink))
}

// ended returns the error of Watch: the cause of the context, if it has ended.
// A request may have failed a moment before the library reports why the
// connection did.
func (s *Source) ended(ctx context.Context, conn *connection, err error) error {
	if conn.conn.IsClosed() {
		<-conn.closed
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return s.config.failed(err, conn.hidden)
}

// follow reads the bucket until something ends it.
func (s *Source) follow(ctx context.Context, conn *connection, resume stream.Resume, sink stream.Sink) error {
	b, now, err := s.config.open(ctx, conn)
	if err != nil {
		return err
	}
	r, err := s.begin(ctx, b, now, resume, sink)
	if err != nil {
		return err
	}
	c, err := b.consume(ctx, now, r.from())
	conn.ended = c.ended
	if err != nil {
		return err
	}
	err = r.read(ctx, c.deliveries, s.config.PollInterval)
	if errors.Is(err, errRestored) {
		s.restore(now)
	}
	return err
}

// begin continues from resume if nothing is missing, otherwise with a snapshot.
func (s *Source) begin(ctx context.Context, b *bucket, now state, resume stream.Resume, sink stream.Sink) (*reader, error) {
	if resume.Epoch == "" || s.lot == "" {
		s.lot = rand.Text()[:8]
	}
	if s.checkpoint != nil && s.checkpoint.epoch == s.epoch(now) && now.last < s.checkpoint.witness.sequence {
		s.restore(now)
	}
	r := &reader{
		bucket: b, sink: sink, begin: now, filter: b.filter(now), stall: s.config.StallAfter, floor: now.last,
		meter: b.meter, deletesTo: now.last,
	}
	epoch := s.epoch(now)
	if s.checkpoint != nil && s.checkpoint.epoch == epoch {
		r.old = s.checkpoint
	}
	if resume.Epoch == epoch && resume.Revision <= now.last && s.checkpoint.resumes(epoch, resume.Revision) {
		same, err := s.recognises(ctx, b)
		if err != nil {
			return nil, err
		}
		if same {
			r.checkpoint, r.resume, r.at = s.checkpoint, true, resume.Revision
			r.deletesTo = resume.Revision - min(resume.Revision, resume.DeletesBehind)
			return r, nil
		}
	}
	r.checkpoint = newCheckpoint(epoch)
	r.complete = func() { s.checkpoint = r.checkpoint }
	return r, sink.Reset(epoch)
}

// recognises reports whether the last message read still exists.
func (s *Source) recognises(ctx context.Context, b *bucket) (bool, error) {
	m, err := b.at(ctx, s.checkpoint.witness.sequence)
	return err == nil && s.checkpoint.is(m, b), err
}

// epoch names the current revision order of the bucket.
func (s *Source) epoch(now state) string {
	restored, lot := "", ""
	if s.made.Equal(now.created) {
		restored = s.restored
	}
	if now.forgets {
		lot = s.lot
	}
	return epochOf(&s.config, now.created, restored, lot)
}

// restore records that the bucket was restored from a backup.
func (s *Source) restore(now state) {
	s.made, s.restored = now.created, fmt.Sprintf("%d@%d", now.last, now.time.UnixNano())
}
