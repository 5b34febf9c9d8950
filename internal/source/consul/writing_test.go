//go:build servers

package consul

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
)

// stored is a key as Consul's own API shows it.
type stored struct {
	Value              []byte
	Flags, ModifyIndex uint64
	Session            string
}

// kv reads a key, which exists.
func (c *consul) kv(key string) stored {
	c.t.Helper()
	var all []stored
	if err := json.Unmarshal(c.call("GET", "/v1/kv/"+key+"?consistent", nil), &all); err != nil || len(all) != 1 {
		c.t.Fatalf("%d keys %s, error %v", len(all), key, err)
	}
	return all[0]
}

func newKVWriter(t *testing.T, c Config, logger *slog.Logger) *adapter.Writer {
	t.Helper()
	c.Collection = KV
	w, err := NewWriter(c, logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestKVWriter(t *testing.T) {
	eachConsul(t, "-dev", "", func(t *testing.T, c *consul) {
		w := newKVWriter(t, Config{HTTPAddress: strings.TrimPrefix(c.http, "http://"), Prefix: "app/"}, slog.New(slog.DiscardHandler))
		first, created, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte(`{"n":1.50}`)})
		if got := c.kv("app/x"); err != nil || !created || string(got.Value) != `{"n":1.50}` || got.ModifyIndex != first.Revision {
			t.Fatalf("%s at %d, answered %d, created %v, error %v", got.Value, got.ModifyIndex, first.Revision, created, err)
		}
		conflict := new(stream.ConflictError)
		if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte("2"), IfRevision: new(uint64)}); !errors.As(err, &conflict) || conflict.Got != first.Revision {
			t.Errorf("of a new key: error %v", err)
		}
		// A key keeps its flags and its lock.
		session := c.callJSON("PUT", "/v1/session/create", map[string]any{"TTL": "60s"}, "ID")
		c.call("PUT", "/v1/kv/app/locked?flags=42&acquire="+session, []byte("1"))
		if _, created, err := w.Put(t.Context(), stream.PutRequest{Key: "locked", Value: []byte("2")}); created || err != nil {
			t.Errorf("created %v, error %v", created, err)
		}
		if got := c.kv("app/locked"); string(got.Value) != "2" || got.Flags != 42 || got.Session != session {
			t.Errorf("%+v, want the flags and the session of before", got)
		}
		// Nothing outside of the prefix is reached.
		c.call("PUT", "/v1/kv/other", []byte("1"))
		for _, key := range []string{"../other", "/other", "%2e%2e/other", "a?cas=0", "a#b", "a\n"} {
			if _, created, err := w.Put(t.Context(), stream.PutRequest{Key: key, Value: []byte("2")}); err != nil || !created {
				t.Errorf("%q: created %v, error %v", key, created, err)
			}
			if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: key}); err != nil || !deleted {
				t.Errorf("%q: deleted %v, error %v", key, deleted, err)
			}
		}
		if got := c.kv("other"); string(got.Value) != "1" {
			t.Errorf("a key beside the prefix is %s", got.Value)
		}
		// What a rule has decided on is what is replaced.
		decisions := 0
		_, _, err = w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte(`"new"`), Condition: func(old *stream.Resource, _ []byte) error {
			if decisions++; decisions == 1 {
				c.call("PUT", "/v1/kv/app/x", []byte(`"yours"`))
				return nil
			}
			return errors.New(string(old.Value))
		}})
		if err == nil || err.Error() != `"yours"` || decisions != 2 {
			t.Errorf("%d decisions, error %v", decisions, err)
		}
		for _, want := range []bool{true, false} {
			if deleted, err := w.Delete(t.Context(), stream.DeleteRequest{Key: "x"}); deleted != want || err != nil {
				t.Errorf("deleted %v, error %v", deleted, err)
			}
		}
		large := `"` + strings.Repeat("x", maxValueBytes-2) + `"`
		if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: strings.Repeat("k", maxKeyBytes-len("app/")), Value: []byte(large)}); err != nil {
			t.Errorf("of the largest value: error %v", err)
		}
		tooLarge := new(stream.TooLargeError)
		if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: strings.Repeat("k", maxKeyBytes), Value: []byte("1")}); !errors.As(err, &tooLarge) {
			t.Errorf("of a long key: error %v", err)
		}
	})
}

func TestKVWriterWithoutPermission(t *testing.T) {
	eachConsul(t, "-dev", aclsOn, func(t *testing.T, c *consul) {
		c.policy("", "reader", `key_prefix "" { policy = "read" }`)
		reader := c.callJSON("PUT", "/v1/acl/token", map[string]any{"Policies": []any{map[string]any{"Name": "reader"}}}, "SecretID")
		file := filepath.Join(t.TempDir(), "token")
		writeToken(t, file, reader)
		var log strings.Builder
		w := newKVWriter(t, Config{HTTPAddress: strings.TrimPrefix(c.http, "http://"), Prefix: "app/", TokenFile: file}, slog.New(slog.NewTextHandler(&log, nil)))
		unable := new(stream.UnavailableError)
		if _, _, err := w.Put(t.Context(), stream.PutRequest{Key: "x", Value: []byte("1")}); !errors.As(err, &unable) ||
			!strings.Contains(log.String(), `policy = \"write\"`) && !strings.Contains(log.String(), `policy = \\\"write\\\"`) || strings.Contains(log.String(), reader) {
			t.Errorf("error %v, log %s", err, log.String())
		}
	})
}
