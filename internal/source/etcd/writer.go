package etcd

import (
	"context"
	"errors"
	"log/slog"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// NewWriter returns a writer of the keys that a Source of the same configuration serves. A key keeps
// its lease. Each write is a transaction, which replaces what was read before and nothing else.
func NewWriter(c Config, logger *slog.Logger) (*adapter.Writer, error) {
	if _, err := New(c); err != nil {
		return nil, err
	}
	return adapter.NewWriter(c.Values, maxRequestBytes-requestBytes, logger, func(ctx context.Context) (adapter.WriteConn, error) {
		t, err := NewTarget(ctx, c)
		if err != nil {
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
func (t writeConn) Check(key string, value []byte) error { return t.source.fits(key, value) }

// Read implements [adapter.WriteConn]. etcd reads linearisably by default.
func (t writeConn) Read(ctx context.Context, key string) (adapter.Stored, error) {
	limited, cancel := t.source.limit(ctx)
	defer cancel()
	answer, err := t.on.client.Get(limited, t.source.keys.prefix+key)
	if err != nil {
		return adapter.Stored{}, t.failed(ctx, because(limited, err))
	}
	if err := t.on.check(answer.Header); err != nil {
		return adapter.Stored{}, t.failed(ctx, err)
	}
	for _, kv := range answer.Kvs {
		revision := uint64(kv.GetModRevision())
		return adapter.Stored{Exists: true, Value: kv.GetValue(), Revision: revision, Version: revision}, nil
	}
	return adapter.Stored{}, nil
}

// Put implements [adapter.WriteConn].
func (t writeConn) Put(ctx context.Context, key string, value []byte, over adapter.Stored, validateOnly bool) (adapter.Stored, error) {
	now := adapter.Stored{Exists: true, Value: value, Revision: over.Revision}
	if validateOnly {
		return now, nil
	}
	var options []clientv3.OpOption
	if over.Exists {
		options = append(options, clientv3.WithIgnoreLease()) // it keeps that
	}
	key = t.source.keys.prefix + key
	var err error
	now.Revision, err = t.write(ctx, key, over, clientv3.OpPut(key, string(value), options...))
	return now, err
}

// Delete implements [adapter.WriteConn].
func (t writeConn) Delete(ctx context.Context, key string, over adapter.Stored, validateOnly bool) error {
	if validateOnly {
		return nil
	}
	key = t.source.keys.prefix + key
	_, err := t.write(ctx, key, over, clientv3.OpDelete(key))
	return err
}

// write makes a change if a key has the version that was read.
func (t writeConn) write(ctx context.Context, key string, over adapter.Stored, change clientv3.Op) (revision uint64, err error) {
	limited, cancel := t.source.limit(ctx)
	defer cancel()
	answer, err := t.on.client.Txn(limited).If(clientv3.Compare(clientv3.ModRevision(key), "=", int64(over.Version))).Then(change).Commit()
	switch {
	case err != nil && rejected(err):
		return 0, adapter.NotWritten(t.failed(ctx, err))
	case err != nil:
		return 0, t.failed(ctx, because(limited, err))
	case !answer.Succeeded:
		return 0, adapter.ErrChanged
	}
	return uint64(answer.Header.GetRevision()), nil
}

// rejected reports whether a member has answered that it does not make a write.
func rejected(err error) bool {
	var of rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &of) {
		return false
	}
	switch of.Code() {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.ResourceExhausted, codes.NotFound:
		return true
	}
	return false
}
