package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// choosy is an upstream that takes the writes of sam alone.
type choosy struct{ stream.Writer }

// TakesConditions implements stream.ConditionalWriter.
func (choosy) TakesConditions() {}

func (c choosy) refuses(key string, by *stream.Author) error {
	switch {
	case by == nil:
		return &stream.DeniedError{Key: key, Reason: "nobody is known"}
	case by.Name != "sam" || strings.Join(by.Groups, " ") != "staff":
		return &stream.DeniedError{Key: key, Reason: "not " + by.Name}
	}
	return nil
}

func (c choosy) Put(ctx context.Context, r stream.PutRequest) (stream.Resource, bool, error) {
	if err := c.refuses(r.Key, r.By); err != nil {
		return stream.Resource{}, false, err
	}
	return c.Writer.Put(ctx, r)
}

func (c choosy) Delete(ctx context.Context, r stream.DeleteRequest) (bool, error) {
	if err := c.refuses(r.Key, r.By); err != nil {
		return false, err
	}
	return c.Writer.Delete(ctx, r)
}

// TestAuthorOfACluster: with the users of a cluster, a principal is the one whom the cluster knows.
func TestAuthorOfACluster(t *testing.T) {
	r := newGuarded(t, func(c *Config) {
		c.Access.Rights = cluster.NewRights(cluster.RightsConfig{UserOf: func(p *access.Principal) (cluster.User, bool) {
			return cluster.User{Name: "sam", Groups: []string{"staff"}}, p.Name == "ann"
		}})
		c.Access.Policy = choosyPolicy(t)
		c.Access.OperationsRole = ""
	})
	embedded := store.New(store.Config{})
	r.add(watch.Config{Name: "choosy", SourceName: "embedded", Source: embedded.Source("choosy"), Writer: choosy{embedded.Writer("choosy")}})
	r.primed("choosy")
	for who, code := range map[string]int{"ann": 201, "sam": 403} {
		if answer := r.send("PUT", "/v1/watches/choosy/resources/"+who, "1", r.as(who)...); answer.StatusCode != code {
			t.Errorf("%s: %s %s, want %d", who, answer.Status, answer.text, code)
		}
	}
}

// choosyPolicy lets everybody do everything with the watch choosy.
func choosyPolicy(t *testing.T) *access.Policy {
	t.Helper()
	policy, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "anyone", When: "true"}},
		Watches: []access.WatchRules{{Name: "choosy", Rules: []access.Rule{{Role: "anyone", Read: "true", Write: "true", Delete: "true"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestAuthorOfAWrite: an upstream that decides by who writes is told, and its answer is the client's.
func TestAuthorOfAWrite(t *testing.T) {
	r, out := audited(t, func(c *Config) {
		c.Access.Policy, c.Access.OperationsRole = choosyPolicy(t), ""
	})
	embedded := store.New(store.Config{})
	r.add(watch.Config{Name: "choosy", SourceName: "embedded", Source: embedded.Source("choosy"), Writer: choosy{embedded.Writer("choosy")}})
	r.primed("choosy")
	const at = "/v1/watches/choosy/resources/a"
	for i, c := range []struct {
		who, method, body string
		code              int
		want              string
	}{
		{"sam", "PUT", "1", 201, `"key":"a"`},
		{"ann", "PUT", "1", 403, "the upstream does not let you do this with the key \\\"a\\\": not ann"},
		{"ann", "DELETE", "", 403, "not ann"},
		{"nobody", "PUT", "1", 401, "nobody is known: send Authorization: Bearer"},
		{"nobody", "DELETE", "", 401, "send Authorization: Bearer"},
		{"sam", "DELETE", "", 200, `"deleted":true`},
	} {
		answer := r.send(c.method, at, c.body, r.as(c.who)...)
		if answer.StatusCode != c.code || !strings.Contains(answer.text, c.want) {
			t.Errorf("%d: %s by %s: %s %s; want %d and %s", i, c.method, c.who, answer.Status, answer.text, c.code, c.want)
		}
	}
	var got []string
	for _, e := range r.lines(out) {
		got = append(got, brief(e))
	}
	want := []string{
		"allowed write token samchoosy anyone#1 r1 201",
		"denied write token annchoosy 403 (the upstream does not let the principal write)",
		"denied delete token annchoosy 403 (the upstream does not let the principal write)",
		"denied write anonymous choosy 401 (the upstream does not let the principal write)",
		"denied delete anonymous choosy 401 (the upstream does not let the principal write)",
		"allowed delete token samchoosy anyone#1 r1 200",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
