package config

import (
	"slices"
	"strings"
	"testing"
)

// TestJournals: which watches are kept, by default and by their own word.
func TestJournals(t *testing.T) {
	c, err := Parse("gateway.yaml", []byte(`
state: { dir: state }
auth: { jwt: [{ issuer: "https://i.example", audience: a, algorithms: [ES256] }], revoked: { watch: revocations } }
sources:
  s: { type: store }
  k: { type: kubernetes }
  h: { type: host }
  e: { type: etcd, endpoints: ["http://127.0.0.1:2379"] }
watches:
  notes: { source: s }
  secrets: { source: k, version: v1, resource: secrets }
  chosen: { source: k, version: v1, resource: secrets, journal: on }
  others: { source: k, group: example.com, version: v1, resource: secrets }
  plain: { source: h, collection: mounts, journal: none }
  asked: { source: h, collection: mounts, prime: false }
  mounts: { source: h, collection: mounts }
  view: { view_of: mounts, prefix: a }
  revoked: { source: e, prefix: revoked/ }
  revocations: { view_of: revoked, prefix: a }
  orders-{region}: { source: e, prefix: "orders/{region}/", params: { region: "[a-z]+" } }
`), Environment{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"chosen", "others", "mounts"}
	if got := c.Journals(); !slices.Equal(got, want) {
		t.Errorf("kept are %v, want %v", got, want)
	}
	c.State.Dir = ""
	if got := c.Journals(); got != nil {
		t.Errorf("without a folder: %v", got)
	}
}

// TestIdentity: what says what is followed counts, and nothing else.
func TestIdentity(t *testing.T) {
	id := func(text string) string {
		c, err := Parse("gateway.yaml", []byte(text), Environment{})
		if err != nil {
			t.Fatal(err)
		}
		return c.Sources[0].Identity(c.Watches[0])
	}
	const etcd = "sources: { e: { type: etcd, endpoints: [\"http://a:1\", \"http://b:1\"] } }\nwatches: { w: { source: e, prefix: p/ } }"
	for old, renewed := range map[string]string{
		`["http://a:1", "http://b:1"]`: `["http://b:1", "http://c:1", "http://d:1"], request_timeout: 7s`,
		"prefix: p/":                   "prefix: p/, history: { max_deletes: 3 }, memory: 64MiB",
	} {
		if id(etcd) != id(strings.Replace(etcd, old, renewed, 1)) {
			t.Errorf("%s counts", renewed)
		}
	}
	for old, renewed := range map[string]string{"p/": "q/", "p/ ": "p/, values: text "} {
		if id(etcd) == id(strings.Replace(etcd, old, renewed, 1)) {
			t.Errorf("%s does not count", renewed)
		}
	}
	cluster, pods := &Source{Type: Kubernetes}, Watch{Writable: true}
	before := cluster.Identity(pods)
	if pods.Kubernetes.Impersonate = true; cluster.Identity(pods) != before {
		t.Error("in whose name writes are made counts")
	}
}
