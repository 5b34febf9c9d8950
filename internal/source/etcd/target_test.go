//go:build servers

package etcd

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/source/adapter"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	target, err := NewTarget(ctx, Config{Endpoints: []string{s.Addr()}, Prefix: "/a/"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	largest := []byte(`"` + strings.Repeat("x", maxRequestBytes-requestBytes-3*len("/a/large")-2) + `"`)
	if err := target.Check("large", append(largest, ' ')); err == nil {
		t.Error("a value that is larger than a request is taken")
	}
	if err := target.Check("large", largest); err != nil {
		t.Error(err)
	}
	for _, want := range []bool{true, false} {
		if created, err := target.Create(ctx, "large", largest); created != want || err != nil {
			t.Errorf("created %v, error %v", created, err)
		}
	}
	s.put("/a/x", `{"n":1}`)
	if _, err := target.Create(ctx, "x", []byte(`{"n":2}`)); !errors.Is(err, adapter.ErrTaken) {
		t.Errorf("of another value: error %v", err)
	}
	if got, err := s.client.Get(ctx, "/a/x"); err != nil || string(got.Kvs[0].Value) != `{"n":1}` {
		t.Errorf("%v, error %v", got, err)
	}
}

func TestTargetWithoutPermission(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.secure()
	target, err := NewTarget(t.Context(), Config{Endpoints: []string{s.Addr()}, Prefix: "/a/", Username: "gateway", PasswordFile: passwordFile(t, "pass-word")})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := target.Create(t.Context(), "x", []byte("1")); err == nil || !strings.Contains(err.Error(), `user "gateway" wants a role that may write it`) {
		t.Errorf("error %v", err)
	}
}
