//go:build servers

package commands

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// kube is a real kube-apiserver with RBAC, and a client of it as admin.
type kube struct {
	t       *testing.T
	server  *realserver.Server
	address string
	ca      string // a file
	http    *http.Client
}

func newKube(t *testing.T) *kube {
	t.Helper()
	if os.Getenv("WATCHTIDE_FULL_KUBERNETES") == "" {
		t.Skip("WATCHTIDE_FULL_KUBERNETES is not set")
	}
	dir := t.TempDir()
	k := &kube{t: t, address: realserver.FreeAddress(t), ca: filepath.Join(dir, "apiserver.crt")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	signing := file(t, "sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
	tokens := file(t, "tokens.csv", "admin-token,admin,admin-uid,system:masters\ngateway-token,gateway,gateway-uid\n")
	k.server = realserver.Command{Path: realserver.Build(t, "kubeapiserver"), Address: k.address, Args: []string{
		"--etcd-servers=http://" + started(t, "etcd").Addr(), "--bind-address=127.0.0.1", "--secure-port=" + k.address[strings.LastIndexByte(k.address, ':')+1:],
		"--cert-dir=" + dir, "--authorization-mode=RBAC", "--token-auth-file=" + tokens, "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + signing, "--service-account-signing-key-file=" + signing,
		"--endpoint-reconciler-type=none", "--profiling=false",
	}}.Start(t)
	certificate, err := os.ReadFile(k.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	k.http = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	k.await("the API server to be ready", func() bool { _, code := k.try("GET", "/readyz", nil); return code == 200 })
	return k
}

func (k *kube) await(what string, so func() bool) {
	k.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !so(); <-tick.C {
		if time.Now().After(end) {
			k.t.Fatalf("still waiting for %s", what)
		}
	}
}

// object is a JSON object.
type object = map[string]any

// do makes a request as admin, which must succeed.
func (k *kube) do(method, path string, body object) string {
	k.t.Helper()
	answer, code := k.try(method, path, body)
	if code/100 != 2 {
		k.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

func (k *kube) try(method, path string, body object) (string, int) {
	raw, err := json.Marshal(body)
	if err != nil {
		k.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(k.t.Context(), method, "https://"+k.address+path, bytes.NewReader(raw))
	if err != nil {
		k.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer admin-token")
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := k.http.Do(request)
	if err != nil {
		return err.Error(), 0
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error(), 0
	}
	return string(text), answer.StatusCode
}

// kubeRights are the API group of roles.
const kubeRights = "/apis/rbac.authorization.k8s.io/v1/"

// role makes a cluster role, and binds it to a user everywhere if that has a name.
func (k *kube) role(name, user string, rules ...object) {
	k.t.Helper()
	k.do("POST", kubeRights+"clusterroles", object{"metadata": object{"name": name}, "rules": rules})
	if user != "" {
		k.do("POST", kubeRights+"clusterrolebindings", object{
			"metadata": object{"name": name}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
			"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
		})
	}
}

// token returns a token of a service account in the namespace users, for an audience.
func (k *kube) token(account, audience string) string {
	k.t.Helper()
	answer := k.do("POST", "/api/v1/namespaces/users/serviceaccounts/"+account+"/token", object{"spec": object{"audiences": []string{audience}}})
	var review struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(answer), &review); err != nil || review.Status.Token == "" {
		k.t.Fatalf("%v: %s", err, answer)
	}
	return review.Status.Token
}

// let lets a user read a namespace, or not any more.
func (k *kube) let(user, namespace string, may bool) {
	k.t.Helper()
	at := kubeRights + "namespaces/" + namespace + "/rolebindings"
	if !may {
		k.do("DELETE", at+"/"+user, nil)
		return
	}
	k.do("POST", at, object{
		"metadata": object{"name": user}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
		"subjects": []object{{"kind": "ServiceAccount", "name": user, "namespace": "users"}},
	})
}

// rightsOfUsers are those that users have, and had, in the cluster.
type rightsOfUsers struct {
	mu sync.Mutex
	// Guarded by mu.
	may  map[string]bool      // "user namespace"
	lost map[string]time.Time // when a right ended
}

// had reports whether a user may read a namespace, or could lately.
func (r *rightsOfUsers) had(user, namespace string, lately time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, lost := r.lost[user+" "+namespace]
	return r.may[user+" "+namespace] || lost && time.Since(at) < lately
}

func (r *rightsOfUsers) set(user, namespace string, may bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.may[user+" "+namespace] && !may {
		r.lost[user+" "+namespace] = time.Now()
	}
	r.may[user+" "+namespace] = may
}

// of returns the namespaces of a user.
func (r *rightsOfUsers) of(user string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, may := range r.may {
		if who, namespace, _ := strings.Cut(key, " "); who == user && may {
			all = append(all, namespace)
		}
	}
	slices.Sort(all)
	return all
}

// kubeReader is a client with a stream that it opens again whenever it ends.
type kubeReader struct {
	t           *testing.T
	url         string
	user, token string
	rights      *rightsOfUsers

	mu sync.Mutex
	// Guarded by mu.
	has      map[string]bool // keys
	goodbyes map[string]int
	resets   int
}

// lately is how long after its end a right may still be seen: the time to refresh, that of the API server
// to know of it, and something for a machine that is busy.
const lately = kubeRefresh + 10*time.Second

const kubeRefresh = 2 * time.Second

var kubeMarker = regexp.MustCompile(`Q[0-9]+Q`)

func (r *kubeReader) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.read(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *kubeReader) read(ctx context.Context) {
	request, err := http.NewRequestWithContext(ctx, "GET", r.url+"/v1/watches/maps/events?format=ndjson", nil)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		r.reset()
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r.line(lines.Text())
	}
}

func (r *kubeReader) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has, r.resets = map[string]bool{}, r.resets+1
}

// line checks one line of a stream: nothing in it is of a namespace that is hidden.
func (r *kubeReader) line(text string) {
	for _, marker := range kubeMarker.FindAllString(text, -1) {
		if namespace := "n" + strings.Trim(marker, "Q"); !r.rights.had(r.user, namespace, lately) {
			r.t.Errorf("%s was sent %s of %s: %.300s", r.user, marker, namespace, text)
		}
	}
	var e struct{ Type, Key, Reason string }
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return // the stream was cut
	}
	if namespace, _, ok := strings.Cut(e.Key, "/"); ok && !r.rights.had(r.user, namespace, lately) {
		r.t.Errorf("%s was sent the key %s: %.300s", r.user, e.Key, text)
	}
	if e.Type == "reset" {
		r.reset()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e.Type {
	case "upsert":
		r.has[e.Key] = true
	case "delete":
		delete(r.has, e.Key)
	case "goodbye":
		r.goodbyes[e.Reason]++
	}
}

// namespaces returns those of which it has resources.
func (r *kubeReader) namespaces() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for key := range r.has {
		namespace, _, _ := strings.Cut(key, "/")
		all = append(all, namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// configMap is a resource of a namespace, with its marker.
func configMap(i, version int) object {
	return object{"metadata": object{"name": "c"}, "data": object{"is": streamtest.Marker(i), "version": fmt.Sprint(version)}}
}

// serve makes namespaces with a resource each, and starts a gateway that may follow them, and ask who may read them.
func (k *kube) serve(refresh time.Duration, namespaces int) *served {
	k.t.Helper()
	t := k.t
	k.role("reader", "", object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"list", "watch"}})
	k.role("lister", "", object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"list"}})
	k.role("gateway", "gateway",
		object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"list", "watch"}},
		object{"apiGroups": []string{""}, "resources": []string{"namespaces"}, "verbs": []string{"list"}},
		object{"apiGroups": []string{"rbac.authorization.k8s.io"}, "resources": []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, "verbs": []string{"list", "watch"}},
		object{"apiGroups": []string{"authentication.k8s.io"}, "resources": []string{"tokenreviews"}, "verbs": []string{"create"}},
		object{"apiGroups": []string{"authorization.k8s.io"}, "resources": []string{"subjectaccessreviews"}, "verbs": []string{"create"}})
	k.do("POST", "/api/v1/namespaces", object{"metadata": object{"name": "users"}})
	for i := range namespaces {
		k.do("POST", "/api/v1/namespaces", object{"metadata": object{"name": fmt.Sprint("n", i)}})
		k.do("POST", fmt.Sprintf("/api/v1/namespaces/n%d/configmaps", i), configMap(i, 0))
	}
	kubeconfig := file(t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: gateway, user: {token: gateway-token}}]
contexts: [{name: this, context: {cluster: here, user: gateway}}]
current-context: this
`, k.address, k.ca))
	return serve(t, "--config", file(t, "gateway.yaml", fmt.Sprintf(`
auth: { kubernetes: { source: cluster, audiences: [watchtide], refresh: %v, hold: %v, reviews_per_second: 1000 } }
sources: { cluster: { type: kubernetes, kubeconfig: %q } }
watches:
  maps: { source: cluster, version: v1, resource: configmaps, allow: kubernetes }
`, refresh, max(20*time.Second, 2*refresh), kubeconfig)))
}

// TestKubernetesForEachUser: users of a real API server with RBAC, whose rights come and go, are sent
// what they may list and watch, and nothing else, and in the end have just that.
func TestKubernetesForEachUser(t *testing.T) {
	users, namespaces, rounds := 20, 200, 300
	if testing.Short() {
		users, namespaces, rounds = 6, 30, 60
	}
	k := newKube(t)
	s := k.serve(kubeRefresh, namespaces)
	rights := &rightsOfUsers{may: map[string]bool{}, lost: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var readers []*kubeReader
	for i := range users {
		name := fmt.Sprint("u", i)
		k.do("POST", "/api/v1/namespaces/users/serviceaccounts", object{"metadata": object{"name": name}})
		r := &kubeReader{t: t, url: s.url(), user: name, token: k.token(name, "watchtide"), rights: rights, has: map[string]bool{}, goodbyes: map[string]int{}}
		readers = append(readers, r)
		running.Go(func() { r.run(ctx) })
	}
	k.refusals(s)
	for round := range rounds {
		for range 3 {
			user, namespace := fmt.Sprint("u", mathrand.IntN(users)), fmt.Sprint("n", mathrand.IntN(namespaces))
			may := !rights.had(user, namespace, 0)
			if may {
				rights.set(user, namespace, true) // before it has the right
			}
			k.let(user, namespace, may)
			rights.set(user, namespace, may)
		}
		for range 5 {
			i := mathrand.IntN(namespaces)
			k.do("PATCH", fmt.Sprintf("/api/v1/namespaces/n%d/configmaps/c", i), configMap(i, round))
		}
	}
	k.settle(readers, rights)

	// A server that does not answer: what was granted holds, and then nothing is.
	k.server.Pause()
	for _, r := range readers {
		k.await(r.user+" to have nothing", func() bool { return len(r.namespaces()) == 0 })
	}
	k.server.Resume()
	k.settle(readers, rights)
}

// settle waits until each user has what they may read.
func (k *kube) settle(readers []*kubeReader, rights *rightsOfUsers) {
	k.t.Helper()
	for _, r := range readers {
		want := rights.of(r.user)
		k.await(fmt.Sprintf("%s to have %v", r.user, want), func() bool { return slices.Equal(r.namespaces(), want) })
		k.t.Logf("%s has %d namespaces, after %d resets and %v", r.user, len(want), r.resets, r.goodbyes)
	}
}

// refusals checks tokens that are not accepted, and a user that may list only.
func (k *kube) refusals(s *served) {
	k.t.Helper()
	k.do("POST", "/api/v1/namespaces/users/serviceaccounts", object{"metadata": object{"name": "half"}})
	k.do("POST", kubeRights+"namespaces/n0/rolebindings", object{
		"metadata": object{"name": "half"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lister"},
		"subjects": []object{{"kind": "ServiceAccount", "name": "half", "namespace": "users"}},
	})
	token := k.token("half", "watchtide")
	for name, c := range map[string]struct {
		token string
		code  int
	}{
		"who may list, and not watch": {token, 404},
		"for the API server":          {k.token("half", "https://kubernetes.default.svc"), 401},
		"with another signature":      {token[:len(token)-8] + "AAAAAAAA", 401},
		"no JWT":                      {"admin-token", 401},
	} {
		request, err := http.NewRequestWithContext(k.t.Context(), "GET", s.url()+"/v1/watches/maps/resources", nil)
		if err != nil {
			k.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.token)
		k.await(name, func() bool {
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			if answer.StatusCode == 200 || kubeMarker.Match(text) {
				k.t.Fatalf("%s: %d %.300s", name, answer.StatusCode, text)
			}
			return answer.StatusCode == c.code
		})
	}
}

// TestKubernetesRulesTakeEffectAtOnce: a user whose binding is deleted has nothing of its namespace soon, long before
// rights are looked at again.
func TestKubernetesRulesTakeEffectAtOnce(t *testing.T) {
	const refresh = 10 * time.Minute
	k := newKube(t)
	s := k.serve(refresh, 3)
	rights := &rightsOfUsers{may: map[string]bool{}, lost: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	k.do("POST", "/api/v1/namespaces/users/serviceaccounts", object{"metadata": object{"name": "ann"}})
	r := &kubeReader{t: t, url: s.url(), user: "ann", token: k.token("ann", "watchtide"), rights: rights, has: map[string]bool{}, goodbyes: map[string]int{}}
	for _, namespace := range []string{"n0", "n1"} {
		rights.set("ann", namespace, true)
		k.let("ann", namespace, true)
	}
	running.Go(func() { r.run(ctx) })
	k.settle([]*kubeReader{r}, rights)
	began := time.Now()
	k.let("ann", "n1", false)
	rights.set("ann", "n1", false)
	k.settle([]*kubeReader{r}, rights)
	if took := time.Since(began); took > refresh/4 {
		t.Errorf("it took %v", took)
	} else {
		t.Logf("it took %v", took)
	}
}
