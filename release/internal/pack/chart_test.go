package pack

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	deploy = "../../../deploy/"
	folder = deploy + "helm/watchtide"
)

var update = flag.Bool("update", false, "write deploy/kubernetes.yaml")

// everything turns on all of the chart.
const everything = `
image: { repository: registry.example.com/watchtide, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", pullSecrets: [registry] }
config:
  http: { hosts: [app.example.com], tls: { cert_file: /tls/tls.crt, key_file: /tls/tls.key } }
  operations: { tls: { cert_file: /tls/tls.crt, key_file: /tls/tls.key } }
  sources: { backend: { type: grpc, address: "dns:///backend:9000" } }
  watches: { services: { source: backend } }
service: { type: LoadBalancer, annotations: { example.com/scheme: internal } }
autoscaling: { enabled: true }
serviceMonitor: { enabled: true, labels: { release: prometheus } }
networkPolicy: { clients: [{ podSelector: {} }] }
serviceAccount: { name: watchtide, create: true, reviews: true, rules: [{ apiGroups: [""], resources: [pods], verbs: [list, watch] }] }
volumes: [{ name: tls, secret: { secretName: watchtide-tls } }]
volumeMounts: [{ name: tls, mountPath: /tls, readOnly: true }]
env: [{ name: HOST, value: app.example.com }]
podAnnotations: { example.com/team: events }
nodeSelector: { kubernetes.io/arch: amd64 }
tolerations: [{ key: dedicated, operator: Exists }]
affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: { topologyKey: zone } }] } }
`

// durable has a store that lasts.
const durable = `
image: { repository: watchtide }
persistence: { enabled: true, storageClass: fast }
config:
  sources: { local: { type: store, path: /var/lib/watchtide/notes.db } }
  watches: { notes: { source: local } }
`

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// render returns the objects that Helm would apply, by the template that they are from.
func render(chartValues map[string]any) (map[string]string, error) {
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "watchtide", Namespace: "default", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, chartValues, release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

func mustRender(t *testing.T, text string) map[string]string {
	t.Helper()
	out, err := render(values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// renderings are the cases that the tests look at.
func renderings(t *testing.T) map[string]string {
	t.Helper()
	plain := readFile(t, deploy+"helm/kubernetes-values.yaml")
	return map[string]string{
		"everything": everything,
		"plain":      plain,
		"durable":    durable + "replicas: 1\n",
		"volumes":    everything + "persistence: { enabled: true }\n",
		"least":      plain + "grpc: { enabled: false }\npodDisruptionBudget: { enabled: false }\n",
	}
}

func TestChartIsLinted(t *testing.T) {
	for name, text := range renderings(t) {
		result := lint.RunAll(folder, values(t, text), "default")
		for _, m := range result.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// TestPlainManifestIsTheChart: one source for those with Helm and for those without.
func TestPlainManifestIsTheChart(t *testing.T) {
	rendered := mustRender(t, readFile(t, deploy+"helm/kubernetes-values.yaml"))
	var out bytes.Buffer
	out.WriteString(`# Made from the chart in deploy/helm by "make manifest", for those who do not use Helm.
# Two replicas of the gateway in front of one gRPC upstream. Any number works:
# positions are valid on every replica, so clients may come back to another.
#
#   kubectl apply -f deploy/kubernetes.yaml
#
# Insert the name of your image and your sources.
`)
	order := []string{"configmap", "deployment", "service", "poddisruptionbudget"}
	for _, name := range order {
		text := strings.TrimSpace(rendered["watchtide/templates/"+name+".yaml"])
		fmt.Fprintf(&out, "%s\n---\n", strings.TrimPrefix(text, "---\n"))
	}
	for name, text := range rendered {
		base := strings.TrimSuffix(path.Base(name), path.Ext(name))
		if path.Ext(name) == ".yaml" && strings.TrimSpace(text) != "" && !slices.Contains(order, base) {
			t.Errorf("the chart also makes %s from these values: name it in the order", base)
		}
	}
	out.Truncate(out.Len() - len("---\n"))
	const file = deploy + "kubernetes.yaml"
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, file) != out.String() {
		t.Error("deploy/kubernetes.yaml is stale: run make manifest, and commit")
	}
}

// TestReplicasAskEachOther: without an address, they are asked as far as the rest of the configuration
// says how, and no token is sent in plain text.
func TestReplicasAskEachOther(t *testing.T) {
	const watches = "  sources: { backend: { type: store } }\n  watches: { services: { source: backend } }\n"
	const tls = "tls: { cert_file: /tls/tls.crt, key_file: /tls/tls.key }"
	for operations, want := range map[string]string{
		"": "dns+http://watchtide-replicas:8081",
		tls + ", replicas_tls: { ca_file: /tls/ca.crt }":                                         "dns+https://watchtide-replicas:8081",
		tls + ", role: staff, replicas_token_file: /tls/token":                                   "dns+https://watchtide-replicas:8081",
		tls + ", role: staff, replicas_tls: { cert_file: /tls/tls.crt, key_file: /tls/tls.key }": "dns+https://watchtide-replicas:8081",
		tls:           "",
		"role: staff": "",
		"role: staff, replicas_token_file: /tls/token": "",
		"replicas_token_file: /tls/token":              "",
		"role: staff, replicas_token_file: /tls/token, replicas: [\"dns+http://watchtide-replicas:8081\"]": "dns+http://watchtide-replicas:8081",
	} {
		text := mustRender(t, "image: { repository: watchtide }\nconfig:\n  operations: { "+operations+" }\n"+watches)["watchtide/templates/configmap.yaml"]
		_, after, found := strings.Cut(text, "replicas:\n")
		got, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(after), "- "), "\n")
		if found != (want != "") || got != want {
			t.Errorf("operations: { %s }: %q is asked, want %q", operations, got, want)
		}
	}
}

// TestServiceAccount: pods have the account that the chart makes, with the rights that are asked for and no
// others.
func TestServiceAccount(t *testing.T) {
	const watches = "image: { repository: watchtide }\nconfig:\n  sources: { c: { type: kubernetes } }\n  watches: { pods: { source: c, version: v1, resource: pods } }\n"
	for account, c := range map[string]struct{ name, rules string }{
		"":                           {"", ""},
		"{ name: mine }":             {"mine", ""},
		"{ create: true }":           {"watchtide", "get"},
		"{ create: true, name: me }": {"me", "get"},
		"{ create: true, reviews: true, rules: [{ apiGroups: [\"\"], resources: [pods], verbs: [list, watch] }] }": {"watchtide", "get pods tokenreviews subjectaccessreviews rolebindings list"},
	} {
		text := watches
		if account != "" {
			text += "serviceAccount: " + account + "\n"
		}
		out := mustRender(t, text)
		pod, rbac := out["watchtide/templates/deployment.yaml"], out["watchtide/templates/rbac.yaml"]
		if got := strings.Contains(pod, "serviceAccountName: "+c.name+"\n"); got != (c.name != "") || got == strings.Contains(pod, "automountServiceAccountToken: false") {
			t.Errorf("%s: want the account %q:\n%s", account, c.name, pod)
		}
		if made := strings.Contains(rbac, "kind: ServiceAccount"); made != (c.rules != "") || made && !strings.Contains(rbac, "name: "+c.name+"\n") {
			t.Errorf("%s: want the account %q made:\n%s", account, c.name, rbac)
		}
		for _, right := range []string{"pods", "tokenreviews", "subjectaccessreviews", "rolebindings"} {
			if strings.Contains(rbac, right) != strings.Contains(c.rules, right) {
				t.Errorf("%s: the right about %s:\n%s", account, right, rbac)
			}
		}
		for i, object := range strings.Split(rbac, "\n---\n") {
			if err := yaml.UnmarshalStrict([]byte(object), &map[string]any{}); err != nil {
				t.Errorf("%s: object %d: %v", account, i, err)
			}
		}
	}
}

// TestMistakesAreRefused: a value that nothing reads would be a silent mistake.
func TestMistakesAreRefused(t *testing.T) {
	plain := readFile(t, deploy+"helm/kubernetes-values.yaml")
	for text, want := range map[string]string{
		"": "config.watches",
		strings.Replace(plain, "networkPolicy", "networkPolicies", 1): "networkPolicies",
		plain + "replicas: two\n":                                     "replicas",
		plain + "service: { port: 0 }\n":                              "port",
		plain + "autoscaling: { subscriber: 5 }\n":                    "subscriber",
		plain + "persistence: { size: much }\n":                       "size",
		durable + "replicas: 2\n":                                     "replicas: 1",
		durable + "replicas: 1\nautoscaling: { enabled: true }\n":     "autoscaling",
	} {
		if _, err := render(values(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %q: error %v, want one about %s", text, err, want)
		}
	}
}

// TestValuesAreThoseOfTheSchema, in both directions, and each is used by a template.
func TestValuesAreThoseOfTheSchema(t *testing.T) {
	type schema struct {
		Properties map[string]schema `json:"properties"`
	}
	var root schema
	if err := json.Unmarshal([]byte(readFile(t, folder+"/values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	var templates strings.Builder
	entries, err := os.ReadDir(folder + "/templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		templates.WriteString(readFile(t, path.Join(folder, "templates", e.Name())))
	}
	delete(root.Properties, "global") // Helm adds it
	var compare func(at string, s schema, v map[string]any)
	compare = func(at string, s schema, v map[string]any) {
		if got, want := slices.Sorted(maps.Keys(v)), slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(got, want) {
			t.Errorf("%s: values.yaml has %q, values.schema.json %q", at, got, want)
		}
		for name, sub := range s.Properties {
			inner, _ := v[name].(map[string]any)
			if len(sub.Properties) > 0 {
				compare(at+"."+name, sub, inner)
			} else if text := templates.String(); !strings.Contains(text, at+"."+name) && !strings.Contains(text, " ."+name) {
				t.Errorf("%s.%s: no template uses it", at, name)
			}
		}
	}
	compare(".Values", root, values(t, readFile(t, folder+"/values.yaml")))
}

func TestChartArchive(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	raw, err := Chart(os.DirFS(folder), "1.2.3", when)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.LoadArchive(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if m := packed.Metadata; m.Version != "1.2.3" || m.AppVersion != "1.2.3" || m.Name != "watchtide" {
		t.Errorf("the archive has %s %s, of %s: want watchtide 1.2.3", m.Name, m.Version, m.AppVersion)
	}
	original, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed.Templates) != len(original.Templates) || len(packed.Templates) == 0 || packed.Schema == nil {
		t.Errorf("the archive has %d templates, the folder %d", len(packed.Templates), len(original.Templates))
	}
	if again, err := Chart(os.DirFS(folder), "1.2.3", when); err != nil || !bytes.Equal(again, raw) {
		t.Errorf("a second archive has other bytes (%v)", err)
	}
}
