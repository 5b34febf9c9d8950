//go:build servers

package commands

import (
	"fmt"
	"strings"
	"testing"
)

// TestKubernetesWritesInTheNameOfUsers: the roles of a real cluster decide on each write by its principal, whatever the
// rules of the gateway allow. The gateway itself may only read, and impersonate, by either kind of role.
func TestKubernetesWritesInTheNameOfUsers(t *testing.T) {
	k := newKube(t)
	reads := object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"list", "watch"}}
	acts := object{"apiGroups": []string{""}, "resources": []string{"users", "groups"}, "verbs": []string{"impersonate"}}
	k.role("gateway", "gateway", reads, acts)
	k.role("editor", "", object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"get", "create", "update", "delete"}})
	k.do("POST", "/api/v1/namespaces", object{"metadata": object{"name": "shop"}})
	k.do("POST", kubeRights+"namespaces/shop/rolebindings", object{
		"metadata": object{"name": "staff"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "editor"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "staff"}},
	})
	p := serveProtected(t, fmt.Sprintf(`
auth: { tokens_file: %%TOKENS%% }
sources: { cluster: { type: kubernetes, kubeconfig: %q } }
roles: { known: { when: 'principal.name != ""' } }
watches:
  maps:
    source: cluster
    version: v1
    resource: configmaps
    namespace: shop
    writable: true
    impersonate: true
    allow: [{ role: known, read: "true", write: "true", delete: "true" }]
`, file(t, "kubeconfig", fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: gateway, user: {token: gateway-token}}]
contexts: [{name: this, context: {cluster: here, user: gateway}}]
current-context: this
`, k.address, k.ca))))
	p.awaitPrimed()
	const at = "/v1/watches/maps/resources/shop/a"
	write := func(who, method string, n int) (int, string) {
		body := ""
		if method == "PUT" {
			body = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"},"data":{"n":"%d"}}`, n)
		}
		return p.ask(who, method, p.http, at, body)
	}
	want := func(who, method string, n, code int, text string) {
		t.Helper()
		if got, answer := write(who, method, n); got != code || !strings.Contains(answer, text) {
			t.Errorf("%s by %s: %d %.600s, want %d and %s", method, who, got, answer, code, text)
		}
	}
	k.await("the role of the staff", func() bool { code, _ := write("sam", "PUT", 1); return code == 201 })
	want("sam", "PUT", 2, 200, `"n":"2"`)
	want("agent", "PUT", 3, 403, `User \"agent\" cannot get resource \"configmaps\"`)
	want("agent", "DELETE", 0, 403, `User \"agent\" cannot get resource`)
	want("", "PUT", 3, 401, "Authorization: Bearer")
	if now := k.do("GET", "/api/v1/namespaces/shop/configmaps/a", nil); !strings.Contains(now, `"n":"2"`) {
		t.Errorf("the cluster has %s", now)
	}

	// The narrower role of docs/sources/kubernetes.md.
	on := []string{"impersonate-on:user-info:get", "impersonate-on:user-info:create", "impersonate-on:user-info:update", "impersonate-on:user-info:delete"}
	roles := func(rules ...object) {
		k.do("PATCH", kubeRights+"clusterroles/gateway", object{"rules": append([]object{reads}, rules...)})
	}
	roles()
	k.await("the gateway to lose its role", func() bool { code, _ := write("sam", "PUT", 4); return code == 503 })
	roles(object{"apiGroups": []string{"authentication.k8s.io"}, "resources": []string{"users", "groups"}, "verbs": []string{"impersonate:user-info"}},
		object{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": on})
	k.await("the narrower role", func() bool { code, _ := write("sam", "PUT", 5); return code == 200 })
	want("agent", "PUT", 6, 403, `User \"agent\" cannot get resource`)
	want("sam", "DELETE", 0, 200, `"deleted":true`)
}
