package nats

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/internal/source/adapter"
)

// maxValueBytes is what a server takes by default. The bucket may take less.
const maxValueBytes = 1<<20 - headerBytes

// NewWriter returns a writer of the keys that a Source of the same configuration serves. Each write
// names the sequence that it expects to be the newest of its key.
func NewWriter(c Config, logger *slog.Logger) (*adapter.Writer, error) {
	if _, err := New(c); err != nil {
		return nil, err
	}
	return adapter.NewWriter(c.Values, maxValueBytes, logger, func(ctx context.Context) (adapter.WriteConn, error) {
		// The connection serves further writes, after the request that it is made for.
		t, err := NewTarget(context.WithoutCancel(ctx), c)
		if err != nil {
			return nil, err
		}
		if t.bucket.stream.CachedInfo().Config.Mirror != nil {
			err := t.source.ended(t.ctx, t.conn, errors.New("the bucket is a mirror: want a watch of its origin to write to"))
			t.Close()
			return nil, err
		}
		return writeConn{t}, nil
	}), nil
}

// writeConn is a connection for writes. It is an adapter.WriteConn.
type writeConn struct{ *Target }

// Close implements [adapter.WriteConn].
func (t writeConn) Close() error {
	t.Target.Close()
	return nil
}

// Check implements [adapter.WriteConn].
func (t writeConn) Check(key string, value []byte) error { return t.fits(key, value) }

// Read implements [adapter.WriteConn]. The leader of the stream answers.
func (t writeConn) Read(ctx context.Context, key string) (adapter.Stored, error) {
	newest, err := t.bucket.newest(ctx, t.bucket.prefix+key)
	if err != nil {
		return adapter.Stored{}, t.failed(ctx, err)
	}
	if newest.sequence == 0 {
		return adapter.Stored{}, nil
	}
	m := &nats.Msg{Data: newest.data}
	if len(newest.header) > 0 {
		m.Header, _ = nats.DecodeHeadersMsg(newest.header) // subscribers get no invalid header either
	}
	return adapter.Stored{
		Exists: operation(m) == written, Value: newest.data, Revision: newest.sequence, Version: newest.sequence,
	}, nil
}

// Put implements [adapter.WriteConn].
func (t writeConn) Put(ctx context.Context, key string, value []byte, over adapter.Stored, validateOnly bool) (adapter.Stored, error) {
	now := adapter.Stored{Exists: true, Value: value, Revision: over.Revision}
	if validateOnly {
		return now, nil
	}
	limited, cancel := t.bucket.limited(ctx)
	defer cancel()
	var err error
	now.Revision, err = t.values.Update(limited, key, value, over.Version)
	return now, t.outcome(ctx, err)
}

// Delete implements [adapter.WriteConn].
func (t writeConn) Delete(ctx context.Context, key string, over adapter.Stored, validateOnly bool) error {
	if validateOnly {
		return nil
	}
	limited, cancel := t.bucket.limited(ctx)
	defer cancel()
	return t.outcome(ctx, t.values.Delete(limited, key, jetstream.LastRevision(over.Version)))
}

// outcome classifies the error of a write. What the stream answers is final.
func (t writeConn) outcome(ctx context.Context, err error) error {
	var answered *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answered) &&
		(answered.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || answered.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return adapter.ErrChanged
	case answered != nil, errors.Is(err, jetstream.ErrNoStreamResponse):
		return adapter.NotWritten(t.failed(ctx, unanswered(ctx, "a write", err)))
	}
	return t.failed(ctx, unanswered(ctx, "a write", err))
}
