package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
)

const everyKeyOfCluster = `
auth:
  kubernetes: { source: prod, audiences: [watchtide, "https://events.example.com"], refresh: 20s, hold: 3m, reviews_per_second: 50 }
  jwt: [{ issuer: "https://idp.example.com", audience: a, algorithms: [ES256], kubernetes: { name_prefix: "oidc:", groups_prefix: "g:" } }]
sources:
  prod: { type: kubernetes, kubeconfig: kube/config }
watches:
  pods: { source: prod, version: v1, resource: pods, allow: kubernetes }
  maps: { source: prod, version: v1, resource: configmaps, writable: true, impersonate: true, allow: kubernetes }
  jobs: { source: prod, group: batch, version: v1, resource: jobs, namespace: shop, allow: [] }
`

func TestEveryKeyOfCluster(t *testing.T) {
	want := Cluster{Source: "prod", Audiences: []string{"watchtide", "https://events.example.com"}, Refresh: 20 * time.Second, Hold: 3 * time.Minute, ReviewsPerSecond: 50}
	c := parse(t, everyKeyOfCluster)
	if got := c.Auth.Kubernetes; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Auth.JWT[0].Kubernetes; got != (ClusterNames{true, "oidc:", "g:"}) {
		t.Errorf("got %+v", got)
	}
	of, labelsAt, ok := c.Policy.Cluster("pods")
	if of != (access.ClusterResource{Resource: "pods"}) || labelsAt != "metadata.labels" || !ok {
		t.Errorf("got %+v, %q, %v", of, labelsAt, ok)
	}
	if of, _, _ := c.Policy.Cluster("maps"); of != (access.ClusterResource{Resource: "configmaps", Writes: true}) {
		t.Errorf("got %+v", of)
	}
	if _, _, ok := c.Policy.Cluster("jobs"); ok {
		t.Error("the cluster decides about a watch with a list of rules")
	}
}

func TestAllowKubernetes(t *testing.T) {
	const auth = "auth: { kubernetes: { source: prod, audiences: [a] } }\nsources: { prod: { type: kubernetes, kubeconfig: c }, test: { type: kubernetes, kubeconfig: d }, local: { type: store } }\nwatches: { "
	for text, want := range map[string]string{
		auth + `a: { source: prod, version: v1, resource: pods, allow: cluster } }`:                                                                   "want a list of rules, or kubernetes",
		auth + `a: { source: test, version: v1, resource: pods, writable: true, impersonate: true, allow: [] } }`:                                     `users of the source "prod" of auth.kubernetes are others in the cluster of "test"`,
		auth + `a: { source: local, allow: kubernetes } }`:                                                                                            "allow: kubernetes is for watches of kubernetes sources, and views of these; want rules",
		auth + `p: { source: local }, a: { view_of: p, prefix: x, allow: kubernetes } }`:                                                              "allow: kubernetes is for watches of kubernetes sources, and views of these; want rules",
		auth + `p: { source: test, version: v1, resource: pods }, a: { view_of: p, prefix: x, allow: kubernetes } }`:                                  `needs the users of the source "test"; want auth.kubernetes.source: test`,
		auth + `a: { source: test, version: v1, resource: pods, allow: kubernetes } }`:                                                                `needs the users of the source "test"; want auth.kubernetes.source: test`,
		auth + `a: { source: prod, version: v1, resource: pods, writable: true, allow: kubernetes } }`:                                                "the gateway would write with its own rights",
		auth + `"a-{n}": { source: prod, version: v1, resource: pods, namespace: "{n}", prime: false, params: { n: "[a-z]+" }, allow: kubernetes } }`: "a parameter is in group, resource or namespace",
		auth + `"a-{r}": { source: prod, version: v1, resource: "{r}", prime: false, params: { r: "[a-z]+" }, allow: kubernetes } }`:                  "a parameter is in group, resource or namespace",
		auth + `"p-{n}": { source: prod, version: v1, resource: pods, namespace: "{n}", prime: false, params: { n: "[a-z]+" }, allow: [] }, "a-{n}": { view_of: "p-{n}", params: { n: "[a-z]+" }, prefix: x, prime: false, allow: kubernetes } }`: "a parameter is in group, resource or namespace",
		auth + `p: { source: prod, version: v1, resource: pods, allow: kubernetes }, a: { view_of: p, by: [status.phase], allow: kubernetes } }`:                                                                                                  "a count that the configuration declares counts all of them",
		auth + `p: { source: prod, version: v1, resource: pods, allow: kubernetes }, b: { view_of: p, by: [spec.nodeName], allow: [] }, a: { view_of: b, prefix: x, allow: kubernetes } }`:                                                        "a count that the configuration declares counts all of them",
		`{ sources: { prod: { type: kubernetes, kubeconfig: c } }, watches: { a: { source: prod, version: v1, resource: pods, allow: kubernetes } } }`:                                                                                            "there is no section auth",
	} {
		if _, err := Parse("f", []byte(text), fakeEnvironment()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestAllowKubernetesOfWhatDependsOnAWatch: of views and templates, the cluster is asked about the resource of the
// watch that they lead to.
func TestAllowKubernetesOfWhatDependsOnAWatch(t *testing.T) {
	c := parse(t, `
auth: { kubernetes: { source: prod, audiences: [a] } }
sources: { prod: { type: kubernetes, kubeconfig: c } }
watches:
  jobs: { source: prod, group: batch, version: v1, resource: jobs, labels_at: spec.labels, allow: [] }
  failed: { view_of: jobs, filter: "value.failed", allow: kubernetes }
  slow: { view_of: failed, fields: [status], allow: kubernetes }
  "team-{team}": { view_of: failed, params: { team: "[a-z]+" }, labels: "team={team}", allow: kubernetes }
  "app-{app}": { source: prod, version: v1, resource: pods, namespace: shop, params: { app: "[a-z]+" }, label_selector: "app={app}", allow: kubernetes }
  "in-{namespace}": { source: prod, version: v1, resource: pods, namespace: "{namespace}", params: { namespace: "[a-z]+" }, allow: [] }
  late: { view_of: in-shop, filter: "value.late", allow: kubernetes }
`)
	jobs, pods := access.ClusterResource{Group: "batch", Resource: "jobs"}, access.ClusterResource{Resource: "pods", Namespace: "shop"}
	for name, want := range map[string]access.ClusterResource{"failed": jobs, "slow": jobs, "team-{team}": jobs, "app-{app}": pods, "late": pods} {
		of, labelsAt, ok := c.Policy.Cluster(name)
		wantLabels := "metadata.labels"
		if want == jobs {
			wantLabels = "spec.labels"
		}
		if of != want || labelsAt != wantLabels || !ok {
			t.Errorf("%s: %+v, %q, %v, want %+v, %q", name, of, labelsAt, ok, want, wantLabels)
		}
	}
}

func TestClusterIsValidated(t *testing.T) {
	const sources = "\nsources: { prod: { type: kubernetes, kubeconfig: c }, local: { type: store } }"
	for text, want := range map[string]string{
		`{ source: prod }`:                                 "audiences is missing",
		`{ audiences: [a] }`:                               "source is missing",
		`{ source: prod, audiences: [] }`:                  "want at least one: the audience of the tokens",
		`{ source: pro, audiences: [a] }`:                  `there is no source "pro"; did you mean "prod"?`,
		`{ source: local, audiences: [a] }`:                `the source "local" is of type store; want one of type kubernetes`,
		`{ source: prod, audiences: [a], hold: 2h }`:       "want at most 1h",
		`{ source: prod, audiences: [a], hold: 10ms }`:     "want",
		`{ source: prod, audiences: [a], hold: 20s }`:      "hold is 20s, and nothing is confirmed more often than refresh, which is 30s",
		`{ source: prod, audiences: [a], refresh: 90m }`:   "want at most 1h",
		`{ source: prod, audiences: [""] }`:                "want",
		`{ source: prod, audiences: [a], token: "x.y.z" }`: `unknown key "token"`,
	} {
		_, err := Parse("f", []byte("auth: { kubernetes: "+text+" }"+sources), fakeEnvironment())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestClusterNamesAreValidated(t *testing.T) {
	if found := problems((&ClusterNames{NamePrefix: "system:", GroupsPrefix: "system:x"}).Validate); len(found) != 2 {
		t.Errorf("%v", found)
	}
	if found := problems((&ClusterNames{NamePrefix: "oidc:"}).Validate); len(found) != 0 {
		t.Errorf("%v", found)
	}
}
