//go:build servers

package consul

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/faults"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/sourcetest"
)

// httpAddress is host:port of the HTTP port.
func (c *consul) httpAddress() string { return strings.TrimPrefix(c.http, "http://") }

// do makes a request, and returns its answer. It does not fail the test, since servers are killed under it.
func (c *consul) do(ctx context.Context, method, path string, body string) (out []byte, header http.Header, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.http+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set(tokenHeader, c.root)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	out, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, out)
	}
	return out, answer.Header, err
}

// keyPath is the path of a key below app/.
func keyPath(key string) string { return (&url.URL{Path: "/v1/kv/app/" + key}).EscapedPath() }

func (c *consul) putKey(ctx context.Context, key, value string) error {
	_, _, err := c.do(ctx, http.MethodPut, keyPath(key), value)
	return err
}

func (c *consul) deleteKey(ctx context.Context, key string) error {
	_, _, err := c.do(ctx, http.MethodDelete, keyPath(key), "")
	return err
}

// keysShown returns the keys as the source must show them, and the index of the store.
func (c *consul) keysShown(ctx context.Context) (all []stream.Resource, index uint64, err error) {
	_, header, err := c.do(ctx, http.MethodGet, "/v1/kv/app/"+probeName+"?consistent", "")
	if err != nil {
		return nil, 0, err
	}
	index = indexOf(&http.Response{Header: header})
	body, _, err := c.do(ctx, http.MethodGet, "/v1/kv/app/?recurse&consistent", "")
	if err != nil {
		return nil, 0, err
	}
	var list []struct {
		Key         string
		Value       []byte
		ModifyIndex uint64
	}
	if len(body) > 0 {
		err = json.Unmarshal(body, &list)
	}
	for _, k := range list {
		value, encoding := stream.ValueFromBytes(k.Value)
		all = append(all, stream.Resource{Key: strings.TrimPrefix(k.Key, "app/"), Revision: k.ModifyIndex, Value: value, Encoding: encoding})
		index = max(index, k.ModifyIndex)
	}
	return all, index, err
}

func keysConfig(address string) Config {
	return Config{HTTPAddress: address, Prefix: "app/", Resources: Resources{Collection: KV}, ProbeInterval: MinProbe, ListInterval: 5 * time.Second}
}

func open(t *testing.T, c Config) stream.Source {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestConformanceOfKeys runs the suite of every source against the key-value store.
func TestConformanceOfKeys(t *testing.T) {
	eachConsul(t, "-dev", "", func(t *testing.T, c *consul) {
		sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
			c.call(http.MethodDelete, "/v1/kv/app/?recurse", nil)
			proxy := realserver.NewProxy(t, c.httpAddress())
			return &sourcetest.Harness{
				Source:      open(t, keysConfig(proxy.Addr())),
				Put:         func(key, value string) error { return c.putKey(t.Context(), key, value) },
				Delete:      func(key string) error { return c.deleteKey(t.Context(), key) },
				Transaction: func(writes []sourcetest.Write) error { return c.transaction(t.Context(), writes) },
				Disconnect:  proxy.Cut,
				Key: func(i int) string {
					return []string{"plain", "ключ", "a=b&c?", "with/slash", `quo"te\`}[i%5] + fmt.Sprint(i)
				},
			}
		})
	})
}

// transaction makes writes at one index.
func (c *consul) transaction(ctx context.Context, writes []sourcetest.Write) error {
	type kv struct{ Verb, Key, Value string }
	var all []map[string]kv
	for _, w := range writes {
		verb := "set"
		if w.Delete {
			verb = "delete"
		}
		all = append(all, map[string]kv{"KV": {verb, "app/" + w.Key, base64.StdEncoding.EncodeToString([]byte(w.Value))}})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_, _, err = c.do(ctx, http.MethodPut, "/v1/txn", string(body))
	return err
}

// TestConformanceOfHealth is the same with instances of services, whose content is in a meta value.
func TestConformanceOfHealth(t *testing.T) {
	for _, service := range []string{"", "web"} {
		t.Run("service "+service, func(t *testing.T) {
			eachConsul(t, "-dev", "", func(t *testing.T, c *consul) {
				sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
					c.call(http.MethodPut, "/v1/catalog/deregister", []byte(`{"Node":"far"}`))
					proxy := realserver.NewProxy(t, c.httpAddress())
					config := keysConfig(proxy.Addr())
					config.Prefix, config.Resources = "", Resources{Collection: Health, Service: service}
					return &sourcetest.Harness{
						Source: metas{open(t, config)},
						Put:    func(key, value string) error { return c.register(t.Context(), key, value) },
						Delete: func(key string) error { return c.deregister(t.Context(), key) }, Disconnect: proxy.Cut,
						Key: func(i int) string { return fmt.Sprint("web-", i) },
					}
				})
			})
		})
	}
}

func (c *consul) register(ctx context.Context, id, value string) error {
	body, err := json.Marshal(map[string]any{
		"Node": "far", "Address": "10.1.1.1", "SkipNodeUpdate": false,
		"Service": map[string]any{"ID": id, "Service": "web", "Port": 80, "Meta": map[string]string{"value": value}},
	})
	if err != nil {
		return err
	}
	_, _, err = c.do(ctx, http.MethodPut, "/v1/catalog/register", string(body))
	return err
}

func (c *consul) deregister(ctx context.Context, id string) error {
	_, _, err := c.do(ctx, http.MethodPut, "/v1/catalog/deregister", fmt.Sprintf(`{"Node":"far","ServiceID":%q}`, id))
	return err
}

// metas shows of instances of the service web their meta value, with the id as the key.
type metas struct{ stream.Source }

func (m metas) Watch(ctx context.Context, from stream.Resume, sink stream.Sink) error {
	return m.Source.Watch(ctx, from, metaSink{sink})
}

// DeletesUnnumbered implements stream.DeletesUnnumbered.
func (m metas) DeletesUnnumbered() bool { return true }

type metaSink struct{ stream.Sink }

func (s metaSink) Upsert(r stream.Resource) error {
	id, web := strings.CutPrefix(r.Key, "web/far/")
	if !web {
		return nil
	}
	var v struct{ Meta struct{ Value string } }
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return err
	}
	r.Key, r.Value = id, []byte(v.Meta.Value)
	return s.Sink.Upsert(r)
}

func (s metaSink) Delete(key string, revision uint64) error {
	if id, web := strings.CutPrefix(key, "web/far/"); web {
		return s.Sink.Delete(id, revision)
	}
	return nil
}

// TestFaultsOfKeys puts the key-value store through all faults.
func TestFaultsOfKeys(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		proxy := realserver.NewProxy(t, c.httpAddress())
		rig := &faults.Rig{
			Name: "consul kv " + path.Base(t.Name()), Proxy: proxy, Source: open(t, keysConfig(proxy.Addr())),
			Notice: 2 * MinProbe,
			Put: func(ctx context.Context, key, value string) (stream.Resource, error) {
				if err := c.putKey(ctx, key, value); err != nil {
					return stream.Resource{}, err
				}
				return c.keyShown(ctx, key)
			},
			Delete: func(ctx context.Context, key string) (uint64, error) { return 0, c.deleteKey(ctx, key) },
			List:   c.keysShown,
		}
		c.serverFaults(rig)
		faults.Run(t, rig)
	})
}

func (c *consul) keyShown(ctx context.Context, key string) (stream.Resource, error) {
	all, _, err := c.keysShown(ctx)
	for _, r := range all {
		if r.Key == key {
			return r, nil
		}
	}
	return stream.Resource{}, fmt.Errorf("%s is not there: %w", key, err)
}

// serverFaults adds the faults of a durable server.
func (c *consul) serverFaults(rig *faults.Rig) {
	rig.Pause, rig.Resume, rig.Kill, rig.Close = c.Pause, c.Resume, c.Kill, c.Kill
	rig.Restart = func() error {
		c.again()
		c.elect()
		return nil
	}
	if rig.Counts {
		return // that what came after the snapshot is missing counts as a change: see TestRestoreOfHealth
	}
	var snapshot []byte
	rig.More = []faults.Fault{
		{Name: "snapshot saved", Inject: func() error {
			snapshot = c.call(http.MethodGet, "/v1/snapshot", nil)
			return nil
		}},
		{Name: "restore of the snapshot", Wipes: true, Inject: func() error {
			c.call(http.MethodPut, "/v1/snapshot", snapshot)
			return nil
		}},
	}
}

// TestFaultsOfHealth is the same with the instances of one service.
func TestFaultsOfHealth(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		proxy := realserver.NewProxy(t, c.httpAddress())
		config := keysConfig(proxy.Addr())
		config.Prefix, config.Resources = "", Resources{Collection: Health}
		rig := &faults.Rig{
			Name: "consul health " + path.Base(t.Name()), Proxy: proxy, Source: metas{open(t, config)},
			Notice: 2 * MinProbe, Counts: true,
			Put: func(ctx context.Context, key, value string) (stream.Resource, error) {
				return stream.Resource{Key: key, Value: []byte(value)}, c.register(ctx, key, value)
			},
			Delete: func(ctx context.Context, key string) (uint64, error) { return 0, c.deregister(ctx, key) },
			List:   c.metasShown,
		}
		c.serverFaults(rig)
		faults.Run(t, rig)
	})
}

// TestRestoreOfHealth: what came after a snapshot that is restored is deleted.
func TestRestoreOfHealth(t *testing.T) {
	eachConsul(t, "-server", "", func(t *testing.T, c *consul) {
		config := keysConfig(c.httpAddress())
		config.Prefix, config.Resources = "", Resources{Collection: Health}
		put := func(id, value string) {
			t.Helper()
			if err := c.register(t.Context(), id, value); err != nil {
				t.Fatal(err)
			}
		}
		put("changed", "1")
		w := follow(t, metas{open(t, config)})
		snapshot := c.call(http.MethodGet, "/v1/snapshot", nil)
		put("changed", "2")
		put("created", "1")
		shows(t, w, "created", "1")
		c.call(http.MethodPut, "/v1/snapshot", snapshot)
		shows(t, w, "created", "")
		shows(t, w, "changed", "1")
		put("changed", "3")
		shows(t, w, "changed", "3")
		w.is(stream.InSync)
	})
}

func (c *consul) metasShown(ctx context.Context) (all []stream.Resource, index uint64, err error) {
	body, _, err := c.do(ctx, http.MethodGet, "/v1/health/service/web?consistent", "")
	if err != nil {
		return nil, 0, err
	}
	var list []struct {
		Service struct {
			ID   string
			Meta map[string]string
		}
	}
	err = json.Unmarshal(body, &list)
	for _, e := range list {
		all = append(all, stream.Resource{Key: e.Service.ID, Value: []byte(e.Service.Meta["value"])})
	}
	return all, 0, err
}

// collections are all that are asked for over HTTP.
var collections = []string{KV, Health, Services, Nodes, Checks, Intentions}

// tokenOf creates a token with rules, and returns it with the id of its policy.
func (c *consul) tokenOf(name, rules string) (secret, policy string) {
	c.t.Helper()
	policy = c.policy("", name, rules)
	body := map[string]any{"Policies": []any{map[string]any{"ID": policy}}}
	return c.callJSON(http.MethodPut, "/v1/acl/token", body, "SecretID"), policy
}

// TestRights: the rules that an error names are those that suffice, and without them nothing that was
// served is deleted.
func TestRights(t *testing.T) {
	eachConsul(t, "-dev", aclsOn, func(t *testing.T, c *consul) {
		c.call(http.MethodPut, "/v1/kv/app/a", []byte("1"))
		if err := c.register(t.Context(), "web-1", "1"); err != nil {
			t.Fatal(err)
		}
		c.call(http.MethodPut, "/v1/catalog/register", []byte(`{"Node":"far","Address":"10.1.1.1","Check":{"CheckID":"alive","Name":"alive","Status":"passing"}}`))
		c.call(http.MethodPut, "/v1/connect/intentions/exact?source=web&destination=db", []byte(`{"SourceType":"consul","Action":"allow"}`))
		for _, collection := range collections {
			t.Run(collection, func(t *testing.T) {
				of := *c
				of.t = t
				of.testRights(collection)
			})
		}
	})
}

func (c *consul) testRights(collection string) {
	t := c.t
	config := keysConfig(c.httpAddress())
	config.Collection, config.ListInterval = collection, MinRelist
	if collection != KV {
		config.Prefix = ""
	}
	s, err := NewQueried(config)
	if err != nil {
		t.Fatal(err)
	}
	q := s.config.query()
	err = s.Watch(t.Context(), stream.Resume{}, streamtest.NewSinkRecorder(stream.Resume{}, nil))
	if err == nil || !strings.Contains(err.Error(), "want token_file with a token whose policy has "+q.right) {
		t.Errorf("without a token: %v", err)
	}
	secret, policy := c.tokenOf("all-"+collection, q.right)
	config.TokenFile = filepath.Join(t.TempDir(), "token")
	writeToken(t, config.TokenFile, secret)
	w := follow(t, open(t, config))
	if w.Snapshot().Count() == 0 {
		t.Fatal("the token reads nothing")
	}
	w.is(stream.InSync)
	c.policy(policy, "all-"+collection, `agent_prefix "" { policy = "read" }`)
	w.is(stream.Stale)
	if reason := w.Status().Full(); !strings.Contains(reason, "want a token whose policy has "+q.right) || strings.Contains(reason, secret) {
		t.Errorf("the reason is %s", reason)
	}
	if gone := w.deleted(); len(gone) > 0 || w.count(stream.Reset) != 1 {
		t.Errorf("%q were deleted, %d resets", gone, w.count(stream.Reset))
	}
	c.policy(policy, "all-"+collection, q.right)
	w.is(stream.InSync)
	writeToken(t, config.TokenFile, "a1b2c3d4-0000-4000-8000-000000000000")
	w.is(stream.Stale)
	if reason := w.Status().Full(); !strings.Contains(reason, "want a token that exists in "+config.TokenFile) || strings.Contains(reason, "a1b2c3d4") {
		t.Errorf("the reason is %s", reason)
	}
}
