package nats

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// consumer receives the messages of a bucket, for one connection.
//
// Static after construction.
type consumer struct {
	deliveries <-chan delivery
	ended      <-chan struct{} // closed when nothing more is sent on deliveries; nil: there is none
}

// forgotten is how long the server keeps a consumer without a subscription.
const forgotten = 10 * time.Second

// consume makes a consumer that begins with the sequence from; with 0, with the
// last message of each key.
func (b *bucket) consume(ctx context.Context, at state, from uint64) (consumer, error) {
	inbox := b.conn.NewInbox()
	c, err := b.listen(ctx, inbox, at.prefix)
	if err != nil {
		return c, err
	}
	config := jetstream.ConsumerConfig{
		DeliverSubject: inbox, FilterSubject: b.filter(at), AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, IdleHeartbeat: b.config.heartbeat(), FlowControl: true,
		MaxDeliver: 1, InactiveThreshold: forgotten, MemoryStorage: true, Replicas: 1,
		Description: "watchtide",
	}
	if from > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, from
	}
	limited, cancel := b.limited(ctx)
	defer cancel()
	_, err = b.jetstream.CreatePushConsumer(limited, b.config.stream(), config)
	return c, unanswered(ctx, "a consumer", err)
}

// filter is the subject, or the pattern of subjects, that is watched.
func (b *bucket) filter(at state) string {
	if b.config.Keys == "" {
		return at.prefix + ">"
	}
	return at.prefix + b.config.Keys
}

// listen receives messages on a subject. The server stops sending when too many
// of them are unprocessed (flow control), so nothing needs to be discarded: more than
// maxPending ends the connection.
func (b *bucket) listen(ctx context.Context, subject, prefix string) (consumer, error) {
	deliveries, ended := make(chan delivery, 512), make(chan struct{})
	sub, err := b.conn.Subscribe(subject, func(m *nats.Msg) {
		d := read(m, subject, prefix, b.config.Values)
		if !strings.HasPrefix(m.Subject, b.config.InboxPrefix+".") { // of answers, framing releases it
			d.held = int64(m.Size())
		}
		select {
		case deliveries <- d:
		case <-ctx.Done():
			return
		}
		if d.confirm != "" {
			_ = b.conn.Publish(d.confirm, nil) // if that fails the connection is lost, which ends the Watch call
		}
	})
	if err != nil {
		return consumer{}, err
	}
	sub.SetClosedHandler(func(string) { close(ended) })
	if err := sub.SetPendingLimits(-1, maxPending); err != nil || !sub.IsValid() {
		return consumer{}, cmp.Or(err, nats.ErrConnectionClosed) // the handler may have been called too late
	}
	return consumer{deliveries, ended}, nil
}
