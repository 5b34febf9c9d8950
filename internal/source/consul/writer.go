package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

const (
	// maxTransaction is what a server takes by default for a transaction. A value is in base64 there.
	maxTransaction = 512 << 10
	// transactionBytes is more than what a transaction has besides the value.
	transactionBytes = 1024
	// maxValueBytes is the size of the largest value.
	maxValueBytes = (maxTransaction - transactionBytes) / 4 * 3
	// maxKeyBytes is what other clients of Consul take.
	maxKeyBytes = 512
)

// NewWriter returns a writer of the keys that a Queried of the same configuration serves. Each write is
// a transaction, which replaces the index that was read before. A key keeps its flags, its session and
// its lock.
func NewWriter(c Config, logger *slog.Logger) (*adapter.Writer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.collection() != KV {
		return nil, fmt.Errorf("consul: the collection %s takes no writes: want the collection %s", c.collection(), KV)
	}
	if c.Entries {
		return nil, errors.New("consul: a watch with entries takes no writes: Consul gives the session and the lock index itself")
	}
	c.setDefaults()
	return adapter.NewWriter(c.Values, maxValueBytes, logger, func(context.Context) (adapter.WriteConn, error) {
		return &kvConn{newAPI(&c, nil, func(error) {})}, nil
	}), nil
}

// kvConn is the key-value store, for writes. It is an adapter.WriteConn.
type kvConn struct{ api *api }

// Close implements [adapter.WriteConn].
func (k *kvConn) Close() error {
	k.api.close()
	return nil
}

// Check implements [adapter.WriteConn].
func (k *kvConn) Check(key string, value []byte) error {
	if n := len(k.api.config.Prefix) + len(key); n > maxKeyBytes {
		return &stream.TooLargeError{What: "key", Size: int64(n), Limit: maxKeyBytes}
	}
	if len(value) > maxValueBytes {
		return &stream.TooLargeError{What: "value", Size: int64(len(value)), Limit: maxValueBytes}
	}
	return nil
}

// operation is one of a transaction.
type operation struct {
	Verb  string
	Key   string
	Value []byte `json:",omitempty"`
	Flags uint64
	Index uint64
}

// outcome is what a transaction is answered.
type outcome struct {
	Results []struct {
		KV struct {
			Value              []byte
			Flags, ModifyIndex uint64
		}
	}
	Errors []struct{ What string }
}

// Read implements [adapter.WriteConn]. The leader answers, once it has made sure that it is the leader.
func (k *kvConn) Read(ctx context.Context, key string) (adapter.Stored, error) {
	answer, err := k.transact(ctx, url.Values{ConsistencyConsistent: {""}}, operation{Verb: "get-or-empty", Key: k.api.config.Prefix + key})
	if err != nil || len(answer.Errors) > 0 {
		return adapter.Stored{}, k.failed(err, answer)
	}
	if len(answer.Results) != 1 || answer.Results[0].KV.ModifyIndex == 0 {
		return adapter.Stored{}, nil
	}
	kv := answer.Results[0].KV
	return adapter.Stored{Exists: true, Value: kv.Value, Revision: kv.ModifyIndex, Version: kv.ModifyIndex, Flags: kv.Flags}, nil
}

// Put implements [adapter.WriteConn].
func (k *kvConn) Put(ctx context.Context, key string, value []byte, over adapter.Stored, validateOnly bool) (adapter.Stored, error) {
	now := adapter.Stored{Exists: true, Value: value, Revision: over.Revision}
	if validateOnly {
		return now, nil
	}
	answer, err := k.write(ctx, operation{Verb: "cas", Key: k.api.config.Prefix + key, Value: value, Flags: over.Flags, Index: over.Version})
	if err == nil && len(answer.Results) == 1 {
		now.Revision = answer.Results[0].KV.ModifyIndex
	}
	return now, err
}

// Delete implements [adapter.WriteConn].
func (k *kvConn) Delete(ctx context.Context, key string, over adapter.Stored, validateOnly bool) error {
	if validateOnly {
		return nil
	}
	_, err := k.write(ctx, operation{Verb: "delete-cas", Key: k.api.config.Prefix + key, Index: over.Version})
	return err
}

// write makes a change.
func (k *kvConn) write(ctx context.Context, op operation) (*outcome, error) {
	answer, err := k.transact(ctx, url.Values{}, op)
	var no *refusal
	switch {
	case errors.As(err, &no) && no.status/100 == 4 && no.status != http.StatusRequestTimeout:
		return nil, adapter.NotWritten(k.failed(err, nil))
	case err != nil:
		return nil, k.failed(err, nil)
	case len(answer.Errors) == 0:
		return answer, nil
	case strings.Contains(answer.Errors[0].What, "index is stale"):
		return nil, adapter.ErrChanged
	}
	return nil, adapter.NotWritten(k.failed(nil, answer))
}

// failed adds the upstream and the remedy to an error, or to that of a transaction.
func (k *kvConn) failed(err error, answer *outcome) error {
	if err == nil {
		no := &refusal{status: http.StatusConflict, text: fmt.Sprintf("%.*s", maxRefusalBytes, answer.Errors[0].What)}
		if strings.Contains(no.text, "Permission denied") {
			no.status = http.StatusForbidden
		}
		err = no
	}
	c := k.api.config
	return c.refusedBy(err, k.api, writeRule(c.Prefix))
}

// transact makes a transaction of one operation. One that was rolled back has errors.
func (k *kvConn) transact(ctx context.Context, params url.Values, op operation) (*outcome, error) {
	c := k.api.config
	for name, value := range map[string]string{"dc": c.Datacenter, "ns": c.Namespace, "partition": c.Partition} {
		if value != "" {
			params.Set(name, value)
		}
	}
	body, err := json.Marshal([]map[string]operation{{"KV": op}})
	if err != nil {
		return nil, err
	}
	token, err := c.token()
	if err != nil {
		return nil, adapter.NotWritten(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("%w: no answer within %v", stream.ErrStalled, askTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, k.api.url("/v1/txn", params).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set(tokenHeader, token)
	}
	request.Header.Set("User-Agent", "watchtide-gateway")
	r, err := k.api.http.Do(request)
	if err != nil {
		return nil, because(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusConflict {
		return nil, because(ctx, refused(r, r.Body))
	}
	out := &outcome{}
	if err := json.NewDecoder(io.LimitReader(r.Body, 2*maxTransaction)).Decode(out); err != nil {
		return nil, because(ctx, err)
	}
	if r.StatusCode == http.StatusConflict && len(out.Errors) == 0 {
		return nil, fmt.Errorf("%w: a transaction was rolled back without an error", stream.ErrInvalid)
	}
	return out, nil
}
