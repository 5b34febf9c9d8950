package setup

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nobody is an address on which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// environment has these variables, and nothing on this machine.
func environment(t *testing.T, variables map[string]string) Environment {
	t.Helper()
	e := Local(func(name string) string { return variables[name] }, t.TempDir())
	e.Etcd, e.Consul, e.NATS = nobody(t), nobody(t), "nats://"+nobody(t)
	return e
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// summary describes sources in lines.
func summary(sources []Source) string {
	var out strings.Builder
	for _, s := range sources {
		fmt.Fprintf(&out, "%s %q", s.Type, s.Fields)
		for _, w := range s.Watches {
			fmt.Fprintf(&out, " %s(%s)", w.Name, w.Fields)
		}
		if s.Problem != nil {
			fmt.Fprintf(&out, " problem")
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func expect(t *testing.T, sources []Source, want string) {
	t.Helper()
	if got := summary(sources); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNothingIsFound(t *testing.T) {
	expect(t, Find(t.Context(), Options{}, environment(t, nil)), "store [\"path: watchtide-state/notes.db\"] notes()\n")
}

// consulAgent answers as an agent does.
func consulAgent(t *testing.T, answer string) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/kv/" || r.Header.Get("X-Consul-Token") != "secret" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Consul-Index", "7")
		if answer == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestConsulSaysWhatItHas(t *testing.T) {
	const health = "health(collection: health)"
	for name, c := range map[string]struct {
		answer, token, want string
	}{
		"folders":   {`["app/","ops/"]`, "secret", health + ` app(collection: kv, prefix: "app/") ops(collection: kv, prefix: "ops/")`},
		"keys":      {`["app/","leader"]`, "secret", health + ` keys(collection: kv)`},
		"no keys":   {``, "secret", health},
		"no Consul": {`<html>`, "secret", health + ` keys(collection: kv) problem`},
		"refused":   {`[]`, "other", health + ` keys(collection: kv) problem`},
	} {
		t.Run(name, func(t *testing.T) {
			e := environment(t, map[string]string{"CONSUL_HTTP_TOKEN": c.token})
			e.Consul = consulAgent(t, c.answer)
			sources := Find(t.Context(), Options{}, e)
			expect(t, sources, fmt.Sprintf("consul [%q] %s\n", fmt.Sprintf("http_address: %q", e.Consul), c.want))
			if text := Text("x", sources); strings.Contains(text, "secret") || !strings.Contains(text, "# token_file") {
				t.Errorf("the token: %s", text)
			}
		})
	}
}

// apiServer is a Kubernetes API server with these paths, and its kubeconfig.
func apiServer(t *testing.T, paths map[string]string) (kubeconfig string) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := paths[r.URL.Path]
		if !ok || r.Header.Get("Authorization") != "Bearer secret" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return kubeconfigOf(server.URL, ca)
}

func kubeconfigOf(server, ca string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: somebody, user: {token: secret}}]
contexts: [{name: this, context: {cluster: here, user: somebody}}]
current-context: this
`, server, ca)
}

var ofPods = map[string]string{"/api/v1": `{"resources":[{"name":"bindings","verbs":["create"]},{"name":"pods","verbs":["list","watch"]}]}`}

func TestKubernetesSaysItsResources(t *testing.T) {
	const pods = "pods(version: \"v1\", resource: \"pods\")"
	for name, c := range map[string]struct {
		paths map[string]string
		want  string
	}{
		"pods": {ofPods, pods},
		"custom resources": {map[string]string{
			"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `{"items":[{"spec":{"group":"example.com","names":{"plural":"widgets"},
				"versions":[{"name":"v1alpha1","served":false},{"name":"v1beta1","served":true},{"name":"v1","served":true}]}}]}`,
		}, `widgets(group: "example.com", version: "v1beta1", resource: "widgets")`},
		"nothing":  {map[string]string{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `{"items":[]}`}, "pods(version: v1, resource: pods)"},
		"no reply": {nil, "pods(version: v1, resource: pods) problem"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "config", apiServer(t, c.paths))
			sources := Find(t.Context(), Options{}, environment(t, map[string]string{"KUBECONFIG": "/does/not/exist:" + file}))
			expect(t, sources, fmt.Sprintf("kubernetes [%q %q] %s\n", `kubeconfig: "`+file+`"`, `context: "this"`, c.want))
		})
	}
}

// A cluster that was not named is asked only if it is on this machine.
// TestNoRedirectIsFollowed: another host receives nothing.
func TestNoRedirectIsFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host received %v", r.Header)
	}))
	t.Cleanup(other.Close)
	elsewhere := http.RedirectHandler(other.URL, http.StatusFound)
	agent := httptest.NewServer(elsewhere)
	t.Cleanup(agent.Close)
	cluster := httptest.NewTLSServer(elsewhere)
	t.Cleanup(cluster.Close)
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})))
	e := environment(t, map[string]string{"CONSUL_HTTP_TOKEN": "secret", "KUBECONFIG": write(t, "config", kubeconfigOf(cluster.URL, ca))})
	e.Consul = strings.TrimPrefix(agent.URL, "http://")
	Find(t.Context(), Options{}, e)
}

func TestOnlyThisMachineIsAsked(t *testing.T) {
	e := environment(t, nil)
	if err := os.Mkdir(filepath.Join(e.Home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(e.Home, ".kube", "config")
	for server, want := range map[string]string{
		apiServer(t, ofPods):                       `pods(version: "v1", resource: "pods")`,
		kubeconfigOf("https://192.0.2.1:6443", ""): `pods(version: v1, resource: pods)`,
	} {
		if err := os.WriteFile(file, []byte(server), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, Find(t.Context(), Options{}, e), fmt.Sprintf("kubernetes [%q %q] %s\n", `kubeconfig: "`+file+`"`, `context: "this"`, want))
	}
	for address, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://[::1]:6443": true, "https://localhost": true,
		"https://10.0.0.1": false, "https://localhost.example.com": false, "https://example.com": false, "": false, "::": false,
	} {
		if isLocal(address) != want {
			t.Errorf("%q is on this machine: %t", address, !want)
		}
	}
}

func TestAPod(t *testing.T) {
	sources := Find(t.Context(), Options{}, environment(t, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}))
	expect(t, sources, "kubernetes [] pods(version: v1, resource: pods) problem\n") // the test is in none
}

// What is named is all that is looked at, and is written even if it does not answer.
func TestOnlyWhatIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.json", "b.yaml", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := environment(t, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
	e.Consul = consulAgent(t, `{}`)
	sources := Find(t.Context(), Options{dir: dir}, e)
	expect(t, sources, fmt.Sprintf("files [%q] %s()\n", fmt.Sprintf("dir: %q", dir), watchName(filepath.Base(dir), "")))
	if note := sources[0].Watches[0].Note; !strings.HasSuffix(note, ": 2") {
		t.Errorf("note %q, want two files", note)
	}
	expect(t, Find(t.Context(), Options{nats: "nats://" + nobody(t), dir: "/does/not/exist"}, e)[1:], "files [\"dir: \\\"/does/not/exist\\\"\"] exist() problem\n")
}

func TestCredentialsAreNotWritten(t *testing.T) {
	address := nobody(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody is there
	e := environment(t, map[string]string{"NATS_URL": "nats://who:hidden@" + address + ",tls://b:4222", "ETCDCTL_ENDPOINTS": address, "ETCDCTL_USER": "who:hidden"})
	text := Text("x", Find(ctx, Options{}, e))
	if strings.Contains(text, "hidden") || strings.Count(text, `# username: "who"`) != 2 || !strings.Contains(text, `url: "nats://`+address+`,tls://b:4222"`) {
		t.Errorf("got %s", text)
	}
}

func TestFirstPartsOfKeys(t *testing.T) {
	for key, want := range map[string]string{
		"/a/b": "/a/", "a/b": "a/", "/a": "", "a": "", "": "", "/": "", "//": "//", "a/": "a/", "\xff/b": "",
	} {
		if got := firstPart([]byte(key)); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

func TestNamesOfWatches(t *testing.T) {
	for of, want := range map[string]string{
		"/settings/": "settings", "a/b c/": "a-b-c", "": "x", "///": "x", "ü": "x", "0.9_-": "0.9", strings.Repeat("k", 99): strings.Repeat("k", 64),
	} {
		if got := watchName(of, "x"); got != want {
			t.Errorf("%q: got %q, want %q", of, got, want)
		}
	}
	long := strings.Repeat("k", 64)
	sources := []Source{{Watches: []Watch{{Name: "a"}, {Name: "a-2"}, {Name: long}}}, {Watches: []Watch{{Name: "a"}, {Name: "a"}, {Name: long}}}}
	distinct(sources)
	var names []string
	for _, s := range sources {
		for _, w := range s.Watches {
			names = append(names, w.Name)
		}
	}
	if want := []string{"a", "a-2", long, "a-3", "a-4", long[:62] + "-2"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestFirstLine(t *testing.T) {
	if got := firstLine(errors.New("one\r\ntwo")); got != "one" {
		t.Errorf("got %q", got)
	}
}

func TestPasswordOfDatabaseStaysOut(t *testing.T) {
	at := "postgres://app:hunter2secret@" + nobody(t) + "/shop?sslmode=disable"
	sources := Find(t.Context(), Options{}, environment(t, map[string]string{"DATABASE_URL": at}))
	shown := strings.Replace(at, ":hunter2secret", "", 1)
	expect(t, sources, fmt.Sprintf("postgres [%q] orders(table: orders) problem\n", "url: "+quoted(shown)))
	if text := Text("x", sources); strings.Contains(text, "hunter2") || !strings.Contains(text, "# password_file") {
		t.Errorf("the password: %s", text)
	}
	expect(t, Find(t.Context(), Options{}, environment(t, map[string]string{"DATABASE_URL": "mysql://app@db/shop"})), "store [\"path: watchtide-state/notes.db\"] notes()\n")
}
