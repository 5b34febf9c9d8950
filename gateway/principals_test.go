package gateway

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
)

const (
	annText  = "ann (https://idp.example.com)"
	shopText = "shop-web (https://idp.example.com)"
)

// newPrincipalsRig returns a rig with four streams of three principals: two of ann and one of bob,
// with tokens for the application shop-web, and one of the static token ci.
func newPrincipalsRig(t *testing.T) (*rig, *guard) {
	t.Helper()
	g := newGuard(t)
	g.static("ci", "staff")
	g.static("visitor")
	access := g.access(wholeWatches("a"))
	access.OperationsRole = "staff"
	r := newRig(t, Config{Metrics: true, Access: access}, "a")
	r.Prime("a", 1)
	as := func(claims map[string]any) string { return bearer(g.provider.Token(t, claims)) }
	r.get("/v1/events?watch=a", as(map[string]any{"azp": "shop-web", "client_id": "other"}))
	ann := as(map[string]any{"azp": "shop-web"})
	go r.get("/v1/watches/a/changes?wait=30s&after=a@e1-1", ann)
	r.get("/v1/events?watch=a&format=ndjson", as(map[string]any{"sub": "bob", "client_id": "shop-web"}))
	r.get("/v1/events?watch=a", g.as("ci"))
	synctest.Wait()
	return r, g
}

// answerOf requests JSON from an endpoint for operators.
func answerOf[T any](r *rig, path, as string) (got T) {
	r.t.Helper()
	x := r.get(path, as)
	if text := x.Text(); x.StatusCode != 200 || json.Unmarshal([]byte(text), &got) != nil {
		r.t.Fatalf("%s: %s %s", path, x.Status, text)
	}
	return got
}

// TestSubscribersByPrincipal checks that operators find subscribers by who they are, and by the
// application that their token was issued to.
func TestSubscribersByPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := newPrincipalsRig(t)
		list := func(query string) introspection.Overview {
			return answerOf[introspection.Overview](r, "/v1/subscribers?"+query, g.as("ci"))
		}
		for query, want := range map[string]int{
			"": 4, "search=ANN": 2, "search=shop-web": 3, "search=idp.example": 3, "search=nosuch": 0,
			"principal=" + url.QueryEscape(annText): 2, "principal=ann": 0, "principal=ci+(token)": 1, "client_id=" + url.QueryEscape(shopText): 3, "client_id=unknown": 1,
			"principal=" + url.QueryEscape(annText) + "&transport=poll": 1,
		} {
			if got := list(query); got.Count != want || len(got.Subscribers) != want {
				t.Errorf("%s: %d, %d listed, want %d", query, got.Count, len(got.Subscribers), want)
			}
		}
		groups := list("group=principal").Groups
		if len(groups) != 3 || groups[0].Name != annText || groups[0].Count != 2 || groups[2].Name != "ci (token)" {
			t.Errorf("by principal: %+v", groups)
		}
		groups = list("group=client_id").Groups
		if len(groups) != 2 || groups[0].Name != shopText || groups[0].Count != 3 || groups[1].Name != "unknown" {
			t.Errorf("by client_id: %+v", groups)
		}
		ann := introspection.Principal{Mechanism: "jwt", Issuer: "https://idp.example.com", Name: "ann", ClientID: "shop-web"}
		for _, s := range list("search=ann").Subscribers {
			if s.Principal != ann {
				t.Errorf("%+v", s.Principal)
			}
		}
	})
}

// TestTopologyByPrincipal checks that the groups of the topology can be those of principals.
func TestTopologyByPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := newPrincipalsRig(t)
		shown := func(query string) introspection.Topology {
			return answerOf[introspection.Topology](r, "/v1/topology"+query, g.as("ci"))
		}
		for query, want := range map[string][]introspection.TopologyGroup{
			"?group=principal": {{Principal: annText}, {Principal: "bob (https://idp.example.com)"}, {Principal: "ci (token)"}},
			"?group=client_id": {{ClientID: shopText}, {ClientID: "unknown"}},
		} {
			got := shown(query)
			if len(got.Groups) != len(want) || got.All.Count != 4 {
				t.Fatalf("%s: %+v", query, got.Groups)
			}
			for i, group := range got.Groups {
				if group.Principal != want[i].Principal || group.ClientID != want[i].ClientID || group.Application+group.Network+group.Transport != "" || len(group.Follows) != 1 {
					t.Errorf("%s: %+v, want %+v", query, group, want[i])
				}
			}
		}
		if got := shown(""); len(got.Groups) != 3 || got.Groups[0].Transport == "" || got.Groups[0].Principal != "" {
			t.Errorf("by default: %+v", got.Groups)
		}
		if x := r.get("/v1/topology?group=watch", g.as("ci")); x.StatusCode != 400 {
			t.Error(x.Status)
		}
	})
}

// TestPrincipalsAreForOperators checks that nobody else is told who follows a watch.
func TestPrincipalsAreForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := newPrincipalsRig(t)
		for _, path := range []string{
			"/v1/subscribers", "/v1/subscribers?group=principal", "/v1/subscribers?group=client_id&limit=0", "/v1/subscribers?search=ann",
			"/v1/topology?group=principal", "/v1/topology?group=client_id", "/v1/replicas", "/v1/watches", "/v1/watches/a", "/v1/client", "/metrics",
		} {
			for _, headers := range [][]string{nil, {g.as("visitor")}} {
				x := r.get(path, headers...)
				if text := x.Text(); strings.Contains(text, "ann") || strings.Contains(text, "shop-web") {
					t.Errorf("%s tells %q: %s", path, headers, text)
				}
			}
		}
	})
}
