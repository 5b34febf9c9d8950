package commands

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/internal/config"
)

// TestClusterOutlivesReloads: what is known of users is kept, unless the cluster or the way to it changes.
func TestClusterOutlivesReloads(t *testing.T) {
	const text = `
auth:
  kubernetes: { source: prod, audiences: [watchtide] }
  jwt: [{ issuer: "https://idp.example.com", audience: a, algorithms: [ES256], kubernetes: { name_prefix: "oidc:" } }]
sources: { prod: { type: kubernetes, kubeconfig: kube }, other: { type: kubernetes, kubeconfig: kube } }
watches: { pods: { source: prod, version: v1, resource: pods, allow: kubernetes } }
`
	of := func(change ...string) *config.Config {
		c, err := config.Parse("", []byte(strings.NewReplacer(change...).Replace(text)), config.Environment{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	logger := slog.New(slog.DiscardHandler)
	first, err := clusterOf(of(), nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change []string
		kept   bool
	}{
		"nothing":            {nil, true},
		"another watch":      {[]string{"resource: pods", "resource: services"}, true},
		"another source":     {[]string{"other: {", "third: {"}, true},
		"the audience":       {[]string{"[watchtide]", "[events]"}, false},
		"the refresh":        {[]string{"[watchtide]", "[watchtide], refresh: 20s"}, false},
		"the kubeconfig":     {[]string{"prod: { type: kubernetes, kubeconfig: kube", "prod: { type: kubernetes, kubeconfig: kube2"}, false},
		"the prefix":         {[]string{"oidc:", "idp:"}, false},
		"users of providers": {[]string{`, kubernetes: { name_prefix: "oidc:" }`, ""}, false},
	} {
		next, err := clusterOf(of(c.change...), first, logger)
		if err != nil || (next == first) != c.kept {
			t.Errorf("%s changes: kept %v, %v", name, next == first, err)
		}
		next.close(first)
	}
	none, err := clusterOf(of("kubernetes: { source: prod, audiences: [watchtide] }", "", "allow: kubernetes", "allow: []"), first, logger)
	if none != nil || err != nil || none.stats() != nil {
		t.Errorf("without the section: %v, %v", none, err)
	}
	if s := first.stats(); len(s) != 2 {
		t.Errorf("figures of %v", s)
	}
	first.close(nil)
}
