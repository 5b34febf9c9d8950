//go:build servers

package commands

import (
	"strings"
	"testing"
)

// TestServeTemplatesOfNATS checks that a value selects the keys of one token, and that one
// that could select more has no watch.
func TestServeTemplatesOfNATS(t *testing.T) {
	address, fill := withNATS(t)
	fill("orders", "orders.eu.1", "orders.eu.west.2", "orders.europe.3", "orders.us.4", "secret.eu.5")
	g := serve(t, "--config", file(t, "nats.yaml", `
stream: { drain_delay: 0s, prime_wait: 20s }
sources: { bus: { type: nats, url: "nats://`+address+`" } }
watches:
  "orders-{region}": { source: bus, params: { region: ".+" }, bucket: orders, keys: "orders.{region}.>", linger: 1s }
`))
	g.expectKeys("orders-eu", "orders.eu.1", "orders.eu.west.2")
	g.expectKeys("orders-europe", "orders.europe.3")
	g.expectKeys("orders-none")
	for _, value := range []string{"eu.west", ".", "*", "%3E", "%2A", "eu.%3E", "eu%20x", "..", "%2F"} {
		if status, _ := g.do("GET", "/v1/watches/orders-"+value+"/resources", ""); status != 404 {
			t.Errorf("%q: %d", value, status)
		}
	}
	g.awaitWatches()
	g.expectKeys("orders-us", "orders.us.4")
}

// TestServeTemplatesOfEtcd checks that a value selects what is below it and nothing else.
func TestServeTemplatesOfEtcd(t *testing.T) {
	address, put := withEtcd(t)
	put("/apps/a/x", "/apps/ab/x", "/apps/../x", "/secret/x", "/apps/a.b/y")
	g := serve(t, "--config", file(t, "etcd.yaml", `
stream: { drain_delay: 0s, prime_wait: 20s }
sources: { kv: { type: etcd, endpoints: ["`+address+`"] } }
watches:
  "app-{app}": { source: kv, params: { app: ".+" }, prefix: "/apps/{app}/", linger: 1s }
`))
	g.expectKeys("app-a", "x")
	g.expectKeys("app-a.b", "y")
	g.expectKeys("app-..", "x")
	g.expectKeys("app-.")
	g.awaitWatches()
	g.expectKeys("app-ab", "x")
}

// expectKeys compares the keys of a watch.
func (s *served) expectKeys(watch string, keys ...string) {
	s.t.Helper()
	status, body := s.do("GET", "/v1/watches/"+watch+"/resources", "")
	var want []string
	for _, key := range keys {
		want = append(want, `{"key":"`+key+`",`)
		if !strings.Contains(body, `{"key":"`+key+`",`) {
			s.t.Errorf("%s has no %s: %d %s", watch, key, status, body)
		}
	}
	if n := strings.Count(body, `{"key":`); status != 200 || n != len(want) {
		s.t.Errorf("%s has %d resources, want %d: %d %s", watch, n, len(want), status, body)
	}
}
