//go:build servers

package commands

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestKubernetesServiceAccounts: a service account of a real cluster writes as itself, with its uid and its extra fields; and once it
// is deleted, its open stream ends within the time for that.
func TestKubernetesServiceAccounts(t *testing.T) {
	const refresh = 30 * time.Second
	k := newKube(t)
	all := func(group string, verbs []string, resources ...string) object {
		return object{"apiGroups": []string{group}, "resources": resources, "verbs": verbs}
	}
	extra := []string{"uids", "userextras/authentication.kubernetes.io/credential-id"}
	k.role("gateway", "gateway",
		all("", []string{"list", "watch"}, "configmaps"), all("", []string{"list"}, "namespaces"), all("", []string{"impersonate"}, "serviceaccounts"),
		all("authentication.k8s.io", []string{"create"}, "tokenreviews"), all("authorization.k8s.io", []string{"create"}, "subjectaccessreviews"))
	k.do("POST", "/api/v1/namespaces", object{"metadata": object{"name": "users"}})
	for _, name := range []string{"web", "other"} {
		k.do("POST", "/api/v1/namespaces/users/serviceaccounts", object{"metadata": object{"name": name}})
	}
	for account, may := range map[string][]string{"web": {"get", "list", "watch", "create", "update", "delete"}, "other": {"get", "list", "watch"}} {
		k.role("of-"+account, "", all("", may, "configmaps"))
		k.do("POST", kubeRights+"namespaces/users/rolebindings", object{
			"metadata": object{"name": account}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "of-" + account},
			"subjects": []object{{"kind": "ServiceAccount", "name": account, "namespace": "users"}},
		})
	}
	s := serve(t, "--config", file(t, "gateway.yaml", fmt.Sprintf(`
auth: { kubernetes: { source: cluster, audiences: [watchtide], refresh: %v } }
sources: { cluster: { type: kubernetes, kubeconfig: %q } }
roles: { known: { when: 'principal.name != ""' } }
watches:
  maps: { source: cluster, version: v1, resource: configmaps, writable: true, impersonate: true, allow: kubernetes }
  extra: { source: cluster, version: v1, resource: configmaps, writable: true, impersonate: true, impersonate_extra: true, allow: kubernetes }
  all: { source: cluster, version: v1, resource: configmaps, allow: [{ role: known, read: "true" }] }
`, refresh, file(t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: gateway, user: {token: gateway-token}}]
contexts: [{name: this, context: {cluster: here, user: gateway}}]
current-context: this
`, k.address, k.ca)))))
	tokens := map[string]string{"web": k.token("web", "watchtide"), "other": k.token("other", "watchtide")}
	ask := func(who, method, path, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.url()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+tokens[who])
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	put := func(who, watch, name string) int {
		t.Helper()
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"users"},"data":{"by":%q}}`, name, who)
		return ask(who, "PUT", "/v1/watches/"+watch+"/resources/users/"+name, body).StatusCode
	}
	k.await("the role of web", func() bool { return put("web", "maps", "a") == 201 })
	k.await("a refusal of the cluster, of an account that may only read", func() bool { return put("other", "maps", "a") == 403 })
	if got := put("web", "extra", "b"); got != 503 {
		t.Errorf("a write with extra fields that the gateway may not send: %d", got)
	}
	k.do("POST", kubeRights+"clusterroles", object{"metadata": object{"name": "extra"}, "rules": []object{all("authentication.k8s.io", []string{"impersonate"}, extra...)}})
	k.do("POST", kubeRights+"clusterrolebindings", object{
		"metadata": object{"name": "extra"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "extra"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "gateway"}},
	})
	k.await("the role for extra fields", func() bool { return put("web", "extra", "b") == 201 })

	stream := ask("web", "GET", "/v1/watches/all/events?format=ndjson", "")
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream has no %s: %v", text, lines.Err())
	}
	until("end_of_snapshot")
	began := time.Now()
	k.do("DELETE", "/api/v1/namespaces/users/serviceaccounts/web", nil)
	until(`"reason":"revoked"`)
	t.Logf("the stream ended %v after its service account was deleted", time.Since(began))
	if took := time.Since(began); took > refresh+5*time.Second {
		t.Errorf("it took %v", took)
	}
}
