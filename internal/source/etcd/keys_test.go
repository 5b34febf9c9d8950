//go:build servers

package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestOddKeysAndPrefixes: a prefix is bytes, and so is a key.
func TestOddKeysAndPrefixes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	keys := []string{"a", "a\xff", "a\xff\xff", "a\xff\xff1", "b", "\xff", "\xff\xff", "\xff\xff\x00", "\x00", "ключ", "k\x00", "k\x00\x00", "/a/", "/a/x", "/a0"}
	for _, test := range []struct {
		prefix string
		want   []string
	}{
		{"", keys},
		{"a\xff", []string{"", "\xff", "\xff1"}},
		{"a\xff\xff", []string{"", "1"}},
		{"\xff", []string{"", "\xff", "\xff\x00"}},
		{"\xff\xff", []string{"", "\x00"}},
		{"\x00", []string{""}},
		{"k", []string{"\x00", "\x00\x00"}},
		{"/a/", []string{"", "x"}},
		{"кл", []string{"юч"}},
		{"nothing", nil},
	} {
		t.Run(test.prefix, func(t *testing.T) {
			for _, key := range keys {
				s.put(key, "1")
			}
			c := subscribe(t, newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: test.prefix}))
			c.awaitSync()
			want := slices.Sorted(slices.Values(test.want))
			c.await(func() string {
				if got := slices.Sorted(maps.Keys(c.held)); !slices.Equal(got, want) {
					return fmt.Sprintf("the keys %q, want %q", got, want)
				}
				return ""
			})
			for _, key := range keys { // as changes, too
				s.put(key, "2")
				s.delete(key)
			}
			c.await(func() string {
				if len(c.held) > 0 {
					return "keys that were deleted"
				}
				return ""
			})
			c.wantNoReconnects()
		})
	}
}

// TestLeaseThatEnds: the keys of a lease are deleted together when it ends. They are there until then.
func TestLeaseThatEnds(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, s *server) {
		var lease clientv3.LeaseID
		s.do("grant a lease", func(ctx context.Context) error {
			granted, err := s.client.Grant(ctx, 1)
			if err == nil {
				lease = granted.ID
			}
			return err
		})
		s.put("/a/stays", "1")
		for _, key := range []string{"/a/x", "/a/y"} {
			s.do("put", func(ctx context.Context) error {
				_, err := s.client.Put(ctx, key, "1", clientv3.WithLease(lease))
				return err
			})
		}
		c := subscribe(t, newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"}))
		c.awaitSync()
		c.await(func() string {
			if len(c.held) != 1 {
				return fmt.Sprintf("%d keys, want the one without a lease", len(c.held))
			}
			return ""
		})
		c.awaitState(s, "/a/")
		c.wantNoReconnects()
		c.wantResets("initial")
	})
}

// TestValues: values are any bytes.
func TestValues(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	c := subscribe(t, newSource(t, Config{Endpoints: []string{s.Addr()}, Prefix: "/values/"}))
	c.awaitSync()
	for key, test := range map[string]struct{ bytes, value, encoding string }{
		"json":   {"{\"n\": 9007199254740993,\n \"z\":1e400}", `{"n":9007199254740993,"z":1e400}`, ""},
		"text":   {"plain \"text\"", `"plain \"text\""`, ""},
		"empty":  {"", `""`, ""},
		"binary": {"\xff\x00", `"/wA="`, "base64"},
	} {
		s.put("/values/"+key, test.bytes)
		c.await(func() string {
			if _, ok := c.held[key]; !ok {
				return key
			}
			return ""
		})
		if r, _ := c.watch.Snapshot().Get(key); string(r.Value) != test.value || r.Encoding != test.encoding {
			t.Errorf("%s: %s (%s), want %s (%s)", key, r.Value, r.Encoding, test.value, test.encoding)
		}
	}
}
