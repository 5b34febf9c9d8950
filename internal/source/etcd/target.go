package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxRequestBytes is what a member takes by default. Keys come three times in a request, and requestBytes
// is more than the rest of it.
const (
	maxRequestBytes = 3 << 19
	requestBytes    = 256
)

// Target creates keys that a Source of the same configuration serves.
//
// Safe for concurrent use.
type Target struct {
	// Static after construction.
	source   *Source
	endpoint endpoint
	on       *connection
}

// NewTarget connects to the first member that answers. The target must be closed.
func NewTarget(ctx context.Context, c Config) (*Target, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	var failures []error
	for range s.endpoints {
		e := s.endpoints[s.at]
		on, err := s.connect(ctx, e, math.MaxInt32)
		if err == nil {
			return &Target{source: s, endpoint: e, on: on}, nil
		}
		if err = s.ended(ctx, e, err); ctx.Err() != nil || refused(err) {
			return nil, err
		}
		failures = append(failures, err)
	}
	return nil, noneOf(failures)
}

// Check reports a resource that would not be served as it is.
func (t *Target) Check(key string, value []byte) error {
	if !adapter.Serves(t.source.config.Values, value, value) {
		return fmt.Errorf("the watch would serve another value: want no values: %s", t.source.config.Values)
	}
	return t.source.fits(key, value)
}

// fits reports a resource that is too large for a request.
func (s *Source) fits(key string, value []byte) error {
	if n := 3*(len(s.keys.prefix)+len(key)) + len(value) + requestBytes; n > maxRequestBytes {
		return &stream.TooLargeError{What: "request for the key and its value", Size: int64(n), Limit: maxRequestBytes}
	}
	return nil
}

// Create creates a key. false: it has this value already. Another value is [adapter.ErrTaken].
func (t *Target) Create(ctx context.Context, key string, value []byte) (created bool, err error) {
	limited, cancel := t.source.limit(ctx)
	defer cancel()
	key = t.source.keys.prefix + key
	answer, err := t.on.client.Txn(limited).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return false, t.failed(ctx, because(limited, err))
	}
	if answer.Succeeded {
		return true, nil
	}
	for _, kv := range answer.Responses[0].GetResponseRange().GetKvs() {
		if adapter.Serves(t.source.config.Values, kv.GetValue(), value) {
			return false, nil
		}
	}
	return false, adapter.ErrTaken
}

// failed adds the upstream and a hint to an error, unless the context has ended.
func (t *Target) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		return fmt.Errorf("etcd %s: permission denied; user %q wants a role that may write it (etcdctl role grant-permission ROLE readwrite --prefix %q)",
			t.endpoint.address, t.source.config.Username, t.source.keys.prefix)
	}
	return t.source.failed(t.endpoint, err)
}

// Close ends the connection.
func (t *Target) Close() { t.on.close() }
