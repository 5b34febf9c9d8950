package kubernetes

import (
	"net/http"
	"strings"
	"testing"
)

// epochOf returns the name under which the fake is followed.
func (f *fake) epochOf() string {
	f.t.Helper()
	f.initial, f.head = stalls(markerAt(7)), replies(200, listOf(7, ""))
	r := f.start(nil)
	r.wantState(7)
	r.stop()
	return r.Resume().Epoch
}

// TestEpochByReadableObjects: the best available identification is used.
func TestEpochByReadableObjects(t *testing.T) {
	forbidden := replies(403, status(403, "Forbidden", "namespaces is forbidden"))
	crd := func(uid string) http.HandlerFunc { return replies(200, `{"metadata":{"uid":"`+uid+`"}}`) }
	inBubble(t, func(f *fake) {
		cluster := f.epochOf()
		f.definition = crd("1")
		if f.epochOf() != cluster {
			t.Error("the definition changes the name, although the cluster can be identified")
		}
		f.cluster = forbidden
		first := f.epochOf()
		f.cluster = replies(404, `404 page not found`)
		if first == cluster || f.epochOf() != first {
			t.Error("want the definition's uid, whether namespaces may not be read or are not there")
		}
		f.definition = crd("2")
		second := f.epochOf()
		f.definition = forbidden
		address := f.epochOf()
		if second == first || address == second || address == cluster || f.epochOf() != address {
			t.Errorf("names are %q, %q, %q and %q, want four", cluster, first, second, address)
		}
	})
}

// TestEpochOfACollection: another filter gives another name; the same filter
// the same.
func TestEpochOfACollection(t *testing.T) {
	inBubble(t, func(f *fake) {
		seen := map[string]bool{f.epochOf(): true}
		c := &f.source.config
		for _, change := range []func(){
			func() { c.LabelSelector = "a=b" },
			func() { c.FieldSelector = "metadata.name=b" },
			func() { c.LabelSelector = "" },
			func() { c.Namespace = "a" },
			func() { c.Version = "v2" },
		} {
			change()
			if name := f.epochOf(); seen[name] {
				t.Errorf("%+v has the name of another collection", c.name())
			} else {
				seen[name] = true
			}
		}
	})
}

// TestClusterThatCannotBeIdentified: a failing server is queried again, not
// renamed.
func TestClusterThatCannotBeIdentified(t *testing.T) {
	inBubble(t, func(f *fake) {
		f.cluster = replies(500, status(500, "InternalError", "etcdserver: request timed out"))
		f.definition = replies(200, `{"metadata":{"uid":"1"}}`)
		if err := f.start(nil).end(); err == nil || !strings.Contains(err.Error(), "etcdserver: request timed out") {
			t.Errorf("error %v, want the server's", err)
		}
	})
}

// TestServerThatStartsUp: its permissions are not loaded yet. The name of the
// order must not depend on that.
func TestServerThatStartsUp(t *testing.T) {
	inBubble(t, func(f *fake) {
		before := f.epochOf()
		ready, cluster := f.head, f.cluster
		refusal := replies(403, status(403, "Forbidden", "RBAC: not yet"))
		f.head, f.cluster = refusal, refusal
		r := f.start(nil)
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "RBAC: not yet") {
			t.Errorf("error %v, want the server's", err)
		}
		r.wantResets(0)
		f.head, f.cluster = ready, cluster
		if after := f.epochOf(); after != before {
			t.Errorf("epoch %q became %q", before, after)
		}
	})
}
