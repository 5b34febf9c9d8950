package config

import (
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"reflect"
	"strings"
	"testing"
	"time"
)

const everyKeyOfKubernetes = `
auth: { tokens_file: tokens }
sources: { cluster: { type: kubernetes, kubeconfig: /etc/kube/config, context: prod, stall_after: 5s } }
watches:
  widgets: { source: cluster, group: example.com, version: v1, resource: widgets, namespace: team-a, label_selector: "app=web,tier!=test", field_selector: metadata.name=web }
  pods: { source: cluster, version: v1, resource: pods, writable: true, impersonate: true, impersonate_extra: true }
`

func TestKubernetesSource(t *testing.T) {
	c := parse(t, everyKeyOfKubernetes)
	if got, want := c.Sources[0].Kubernetes, (kubernetes.Config{Kubeconfig: "/etc/kube/config", Context: "prod", StallAfter: 5 * time.Second}); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	want := kubernetes.Objects{
		Group: "example.com", Version: "v1", Resource: "widgets", Namespace: "team-a",
		LabelSelector: "app=web,tier!=test", FieldSelector: "metadata.name=web",
	}
	if got := c.Watches[0].Kubernetes; !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if got, want := c.Watches[1].Kubernetes, (kubernetes.Objects{Version: "v1", Resource: "pods", Impersonate: true, ImpersonateExtra: true}); got != want || !c.Watches[1].Writable {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

// TestKubernetesWithoutKeys: in a pod a source needs only its type.
func TestKubernetesWithoutKeys(t *testing.T) {
	c := parse(t, `
sources: { here: { type: kubernetes } }
watches: { pods: { source: here, group: "", version: v1, resource: pods, namespace: "" } }
`)
	if got := c.Sources[0].Kubernetes; !reflect.DeepEqual(got, kubernetes.Config{}) {
		t.Errorf("read %+v, want nothing", got)
	}
}

func TestKubeconfigNames(t *testing.T) {
	for written, want := range map[string]string{
		"kube/config": "etc/kube/config", "/kube/config": "/kube/config", "~/.kube/config": "~/.kube/config", "./k": "etc/k",
	} {
		text := "sources: { c: { type: kubernetes, kubeconfig: \"" + written + "\" } }\nwatches: { p: { source: c, version: v1, resource: pods } }\n"
		c, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Sources[0].Kubernetes.Kubeconfig; !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %s, want %s", written, got, want)
		}
	}
}

func TestKubernetesErrors(t *testing.T) {
	for _, c := range []struct{ name, source, watch, want string }{
		{"a context of no file", "context: prod", "version: v1, resource: pods", "sources.c: context is one of a kubeconfig"},
		{"no name of a file", `kubeconfig: ""`, "version: v1, resource: pods", `sources.c.kubeconfig: "": want the name of a kubeconfig file`},
		{"a token", "token: x", "version: v1, resource: pods", `unknown key "token" in sources.c`},
		{"too short", "stall_after: 1s", "version: v1, resource: pods", "want a duration of at least 2s"},
		{"no version", "", "resource: pods", "watches.w: version is missing; want a version of the group, like v1"},
		{"no resource", "", "version: v1", "watches.w: resource is missing; want the plural name"},
		{"an empty resource", "", `version: v1, resource: ""`, `watches.w.resource: "": want the plural name`},
		{"a kind", "", "version: v1, resource: Pod", `watches.w.resource: "Pod": want the plural name of a resource in small letters`},
		{"a subresource", "", "version: v1, resource: pods/log", `watches.w.resource: "pods/log": want the plural name`},
		{"a group with its version", "", "group: apps/v1, version: v1, resource: pods", `watches.w.group: "apps/v1": want the name of an API group`},
		{"a bad selector", "", `version: v1, resource: pods, label_selector: "a in b"`, `watches.w.label_selector: label selector "a in b": want`},
		{"a bad selector from the environment", "", `version: v1, resource: pods, label_selector: "${SECRET} in b"`, `watches.w.label_selector: "${SECRET} in b": want a label selector`},
		{"writes to what only the server selects", "", `version: v1, resource: pods, field_selector: "a=b", writable: true`, `watches.w.writable: only the server knows which objects match a field_selector; want label_selector`},
		{"no writes to make in another name", "", `version: v1, resource: pods, impersonate: true`, `watches.w.impersonate: only writes are made in the name of who makes them; want writable: true`},
		{"nobody to say more of", "", `version: v1, resource: pods, writable: true, impersonate_extra: true`, `watches.w.impersonate_extra: nothing is sent of who makes a write; want impersonate: true`},
		{"writes of nobody", "", `version: v1, resource: pods, writable: true, impersonate: true`, `watches.w.impersonate: without credentials nobody has a name to write in; want auth with credentials`},
		{"another bad selector", "", `version: v1, resource: pods, field_selector: "a"`, `watches.w.field_selector: field selector "a": want`},
		{"a key of another source", "", "version: v1, resource: pods, prefix: x", "prefix is for watches of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := strings.TrimSuffix("type: kubernetes, "+c.source, ", ")
			text := "sources: { c: { " + source + " } }\nwatches: { w: { source: c, " + c.watch + " } }\n"
			_, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
