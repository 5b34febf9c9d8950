package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// rulesServer has no roles and bindings, and then those of after, one each second. forbidden are resources that
// may not be watched.
func rulesServer(t *testing.T, forbidden string, after ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		resource := strings.TrimPrefix(r.URL.Path, "/apis/rbac.authorization.k8s.io/v1/")
		switch {
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1234"}}`)
			return
		case resource == forbidden:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s is forbidden","reason":"Forbidden","code":403}`, resource)
			return
		case !slices.Contains(rulesOf[:], resource):
			t.Errorf("asked for %s", r.URL)
		case r.URL.Query().Get("watch") == "":
			fmt.Fprint(w, `{"kind":"RuleList","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"resourceVersion":"3"},"items":[]}`)
			return
		}
		send := func(kind, object string) {
			fmt.Fprintf(w, `{"type":%q,"object":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Rule","metadata":{%s}}}`+"\n", kind, object)
			_ = http.NewResponseController(w).Flush()
		}
		send("ADDED", `"name":"old","resourceVersion":"4"`)
		send("BOOKMARK", `"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}`)
		for i, change := range after {
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			if kind, object, _ := strings.Cut(change, " "); strings.HasPrefix(object, resource+" ") {
				send(kind, fmt.Sprintf(`%s,"resourceVersion":"%d"`, strings.TrimPrefix(object, resource+" "), i+6))
			}
		}
		<-r.Context().Done()
	}
}

// TestFollowRules: each of the four resources is followed, and a change tells its namespace.
func TestFollowRules(t *testing.T) {
	reviewing(t, rulesServer(t, "",
		`ADDED rolebindings "name":"b","namespace":"shop"`,
		`MODIFIED roles "name":"r","namespace":"bank"`,
		`ADDED clusterroles "name":"c"`,
		`DELETED rolebindings "name":"b","namespace":"shop"`,
		`ADDED clusterrolebindings "name":"c"`,
	), func(t *testing.T, r *Reviewer) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var got []string
		done := make(chan error)
		go func() {
			done <- r.FollowRules(ctx, func(namespace string) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, namespace)
			})
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
		if want := []string{"", "", "", "", "shop", "bank", "", "shop", ""}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q: the four at the begin, and each change", got, want)
		}
	})
}

// TestRulesThatAreForbidden: one that cannot be followed ends all.
func TestRulesThatAreForbidden(t *testing.T) {
	reviewing(t, rulesServer(t, "clusterroles"), func(t *testing.T, r *Reviewer) {
		err := r.FollowRules(t.Context(), func(string) {})
		if err == nil || !strings.Contains(err.Error(), "clusterroles") || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%v", err)
		}
	})
}
