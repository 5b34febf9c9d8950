package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

const (
	// maxKeyValueBytes is how many bytes a value may have by default (kv_max_value_size).
	maxKeyValueBytes = 512 << 10
	// wantKey says what a key may be, for its path stays as it is.
	wantKey = "a name without a leading or a trailing space, and without parts that are empty, . or .. between slashes"
)

// Target creates keys that a Queried of the same configuration serves.
//
// Safe for concurrent use.
type Target struct {
	config Config // static after construction
	api    *api
}

// NewTarget returns a target of the collection kv. It must be closed.
func NewTarget(c Config) (*Target, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.collection() != KV {
		return nil, fmt.Errorf("the collection is %s: want %s, which is the one that takes resources of a store", c.collection(), KV)
	}
	c.setDefaults()
	return &Target{config: c, api: newAPI(&c, nil, func(error) {})}, nil
}

// Close ends the connections.
func (t *Target) Close() { t.api.close() }

// Check reports a resource that would not be served as it is.
func (t *Target) Check(key string, value []byte) error {
	switch whole := t.config.Prefix + key; {
	case key == "" || !validKey(whole):
		return fmt.Errorf("it cannot be in the key-value store: want %s", wantKey)
	case len(value) > maxKeyValueBytes:
		return fmt.Errorf("its value has %d bytes, and Consul takes %d", len(value), maxKeyValueBytes)
	case !adapter.Serves(t.config.Values, value, value):
		return fmt.Errorf("the watch would serve another value: want no values: %s", t.config.Values)
	}
	return nil
}

// validKey reports whether Consul keeps a key as it is.
func validKey(key string) bool {
	if strings.TrimSpace(key) != key || strings.Contains(key, "%") {
		return false // Consul decodes what looks encoded twice
	}
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if part == "." || part == ".." || part == "" && i < len(parts)-1 {
			return false
		}
	}
	return parts[len(parts)-1] != ""
}

// Create creates a key. false: it has this value already. Another value is [adapter.ErrTaken].
func (t *Target) Create(ctx context.Context, key string, value []byte) (created bool, err error) {
	path := "/v1/kv/" + t.config.Prefix + key
	if created, err = t.put(ctx, path, value); created || err != nil {
		return created, t.failed(ctx, err)
	}
	var present []struct{ Value []byte }
	answer, err := t.do(ctx, http.MethodGet, path, url.Values{ConsistencyConsistent: {""}}, nil)
	if err == nil && len(answer) > 0 {
		err = malformed(json.Unmarshal(answer, &present))
	}
	switch {
	case err != nil:
		return false, t.failed(ctx, err)
	case len(present) != 1 || !adapter.Serves(t.config.Values, present[0].Value, value):
		return false, adapter.ErrTaken
	}
	return false, nil
}

// put creates a key that does not exist. false: it exists.
func (t *Target) put(ctx context.Context, path string, value []byte) (created bool, err error) {
	params := url.Values{"cas": {"0"}}
	answer, err := t.do(ctx, http.MethodPut, path, params, value)
	if err != nil {
		return false, err
	}
	return created, malformed(json.Unmarshal(answer, &created))
}

// do makes a request, and returns its answer; nothing: there is no such key.
func (t *Target) do(ctx context.Context, method, path string, params url.Values, body []byte) ([]byte, error) {
	ctx, end := context.WithTimeout(ctx, askTimeout)
	defer end()
	for name, value := range map[string]string{"dc": t.config.Datacenter, "ns": t.config.Namespace, "partition": t.config.Partition} {
		if value != "" {
			params.Set(name, value)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, t.api.url(path, params).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, err := t.config.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set(tokenHeader, token)
	}
	answer, err := t.api.http.Do(request)
	if err != nil {
		return nil, because(ctx, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, nil
	default:
		return nil, refused(answer, answer.Body)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 2*maxKeyValueBytes+maxRefusalBytes))
}

// failed adds the upstream and the remedy to an error, unless the context has ended.
func (t *Target) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil || err == nil {
		return cause
	}
	return t.config.refusedBy(err, t.api, writeRule(t.config.Prefix))
}

// writeRule is the ACL rule that allows to create keys.
func writeRule(prefix string) string {
	return strings.Replace(rule("key_prefix", prefix), `"read"`, `"write"`, 1)
}
