package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

// audited is a guarded gateway with an audit log.
func audited(t *testing.T, change func(*Config)) (*guarded, *lockedText) {
	t.Helper()
	out := &lockedText{}
	r := newGuarded(t, func(c *Config) {
		c.Access.Audit = out
		if change != nil {
			change(c)
		}
	})
	return r, out
}

// lines returns the entries that have been recorded since the gateway began, once it writes
// no more. After that, it records none.
func (r *guarded) lines(out *lockedText) (entries []access.AuditEntry) {
	r.t.Helper()
	r.gateway.audit.Close(10 * time.Second)
	for line := range strings.Lines(out.String()) {
		var e access.AuditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatalf("%q: %v", line, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// brief is an entry as a test writes it: what was decided about whom, and why.
func brief(e access.AuditEntry) string {
	text := fmt.Sprintf("%s %s %s %s%s", e.Decision, e.Action, e.Mechanism, e.Name, e.Watch)
	for _, r := range e.Rules {
		text += fmt.Sprintf(" %s#%d", r.Role, r.Number)
	}
	if e.View != "" {
		text += " part"
	}
	if e.Revision != 0 {
		text += fmt.Sprintf(" r%d", e.Revision)
	}
	if e.Status != 0 {
		text += fmt.Sprintf(" %d", e.Status)
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// TestAudit: each decision has its line, and no line has what is nobody's business.
func TestAudit(t *testing.T) {
	r, out := audited(t, nil)
	secret := "?filter=value.margin!%3D%22s3cret-q%22"
	var want []string
	for _, c := range []struct{ who, method, path, body, want string }{
		{"sam", "GET", "/v1/watches/orders/resources", "", "allowed list token samorders staff#1 anyone#3"},
		{"agent", "GET", "/v1/watches/orders/resources" + secret, "", "allowed list token agentorders acme#2 anyone#3 part"},
		{"agent", "GET", "/v1/watches/orders/resources?filter=(", "", ""},
		{"ann", "GET", "/v1/watches/orders/resources/o_1", "", "allowed get token annorders anyone#3 part"},
		{"ann", "GET", "/v1/watches/orders/changes?wait=1ms", "", "allowed poll token annorders anyone#3 part"},
		{"ann", "GET", "/v1/events?watch=orders&until=end_of_snapshot", "", "allowed open token annorders anyone#3 part"},
		{"sam", "GET", "/v1/watches/orders/events?until=end_of_snapshot", "", "allowed open token samorders staff#1 anyone#3"},
		{"ann", "GET", "/v1/watches/vault", "", "denied describe token annvault 404 (no rule of the watch applies)"},
		{"ann", "GET", "/v1/events?watch=orderz", "", "denied open token annorderz 404 (there is no such watch)"},
		{"nobody", "GET", "/v1/watches/vault/changes", "", "denied poll anonymous vault 401 (no rule of the watch applies)"},
		{"sam", "PUT", "/v1/watches/orders/resources/o_9", `{"margin":"s3cret-v"}`, "allowed write token samorders staff#1 r4 201"},
		{"sam", "PUT", "/v1/watches/orders/resources/o_9", `{}`, "allowed write token samorders staff#1 r5 200"},
		{"sam", "PUT", "/v1/watches/orders/resources/o_9?validate_only=true", `{}`, "allowed write token samorders staff#1 200"},
		{"agent", "PUT", "/v1/watches/orders/resources/o_1", `{}`, "denied write token agentorders 403 (only a part of the resource may be read)"},
		{"ann", "PUT", "/v1/watches/orders/resources/o_1", `{"owner":"bob"}`, "denied write token annorders 403 (no rule allows it)"},
		{"ann", "PUT", "/v1/watches/orders/resources/o_2", `{"owner":"ann"}`, "denied write token annorders 404 (the resource may not be read)"},
		{"ann", "DELETE", "/v1/watches/orders/resources/o_2", "", "denied delete token annorders 200 (the resource may not be read)"},
		{"ann", "DELETE", "/v1/watches/orders/resources/o_1", "", "allowed delete token annorders anyone#3 r1 200"},
		{"sam", "POST", "/v1/session", "", "allowed login token sam 204"},
		{"nobody", "POST", "/v1/session", "", "denied login anonymous  401 (credential_required)"},
		{"ann", "POST", "/v1/tickets", `{"watches":["vault"]}`, "denied ticket token annvault 404 (no rule of the watch applies)"},
		{"ann", "POST", "/v1/tickets", `{"watches":["orders"]}`, "allowed ticket token ann 200"},
		{"ann", "PUT", "/v1/streams/nonsense", "", "denied renew token ann 404 (there is no such stream here)"},
		{"ann", "GET", "/v1/watches", "", ""},
	} {
		got := r.send(c.method, c.path, c.body, r.as(c.who)...)
		if c.want != "" {
			want = append(want, c.want)
		}
		if got.StatusCode >= 500 {
			t.Errorf("%s %s: %s", c.method, c.path, got.Status)
		}
	}
	r.get("/v1/watches/orders", "Authorization: Bearer hunter2hunter2").want(t, 401, "")
	want = append(want, "denied credential   401 (invalid_token)")
	var got []string
	for _, e := range r.lines(out) {
		got = append(got, brief(e))
		if e.Time.IsZero() || !e.Address.IsLoopback() || e.Mechanism == "token" && e.Via != "authorization" {
			t.Errorf("entry %+v", e)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, part := range []string{"s3cret", "hunter2", "filter", "value.", "margin", "o_1", "o_9", r.tokens["sam"], "globex", "claims", "groups"} {
		if strings.Contains(out.String(), part) {
			t.Errorf("the log has %q:\n%s", part, out.String())
		}
	}
}

// TestAuditOverGRPC: calls have the same lines as requests.
func TestAuditOverGRPC(t *testing.T) {
	r, out := audited(t, nil)
	ann := r.over("ann")
	_, _ = r.grpc.GetResource(ann, &api.GetResourceRequest{Watch: "orders", Key: "o_1"})
	_, _ = r.grpc.ListResources(ann, &api.ListResourcesRequest{Watch: "vault"})
	_, _ = r.grpc.PutResource(ann, &api.PutResourceRequest{Watch: "orders", Key: "o_5", Value: []byte(`{"owner":"ann"}`)})
	_, _ = r.grpc.DeleteResource(ann, &api.DeleteResourceRequest{Watch: "orders", Key: "o_5"})
	call, err := r.grpc.WatchList(ann, &api.WatchListRequest{Watch: "orders", UntilEndOfSnapshot: true})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = call.Recv()
	}
	var got []string
	for _, e := range r.lines(out) {
		got = append(got, brief(e))
	}
	want := []string{
		"allowed get token annorders anyone#3 part",
		"denied list token annvault 404 (no rule of the watch applies)",
		"allowed write token annorders anyone#3 r4 201",
		"allowed delete token annorders anyone#3 r4 200",
		"allowed open token annorders anyone#3 part",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAuditOfStreams that end: a rule that goes away, and the end of a session, have a line
// for each stream, with its id.
func TestAuditOfStreams(t *testing.T) {
	var started Config
	r, out := audited(t, func(c *Config) { started = *c })
	s := r.follow("ann", "/v1/watches/orders/events", "identity")
	s.until("end_of_snapshot")
	id := ""
	for _, line := range s.seen {
		if _, rest, ok := strings.Cut(line, `"stream":"`); ok && id == "" {
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	r.send(http.MethodPut, "/v1/streams/"+id, "", r.as("ann")...).want(t, 204, "")
	r.send(http.MethodPut, "/v1/streams/"+id, "", r.as("sam")...).want(t, 403, "")
	narrower, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "anyone", When: "true"}},
		Watches: []access.WatchRules{{Name: "orders", Rules: []access.Rule{{Role: "anyone", Read: `value.owner == principal.name`, Fields: []string{"eta"}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range []struct {
		policy *access.Policy
		shows  string
	}{{narrower, "end_of_snapshot"}, {access.EmptyPolicy(), "goodbye"}} {
		access := *started.Access
		access.Policy, access.OperationsRole = next.policy, ""
		started.Access = &access
		if err := r.gateway.Reload(started); err != nil {
			t.Fatal(err)
		}
		s.until(next.shows)
	}
	var got []string
	for _, e := range r.lines(out) {
		if e.Stream != "" && e.Stream != id {
			t.Errorf("the stream is %q, want %q", e.Stream, id)
		}
		got = append(got, brief(e)+strings.Join(e.Watches, ","))
	}
	want := []string{
		"allowed open token annorders anyone#3 part", "allowed renew token ann 204",
		"denied renew token sam 403 (the stream is of somebody else)", "allowed move token annorders anyone#1 part", "ended revoke token annorders",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAuditOfAStreamThatMoves: what it shows from now on has a line like what it began with.
func TestAuditOfAStreamThatMoves(t *testing.T) {
	var started Config
	r, out := audited(t, func(c *Config) { started = *c })
	s := r.follow("agent", "/v1/watches/orders/events", "identity")
	s.until("end_of_snapshot")
	changed := *started.Access
	rules := slices.Clone(orderRules)
	rules[1].Fields = []string{"status"}
	var err error
	changed.Policy, err = access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "staff", When: "false"}, {Name: "acme", When: "true", With: []access.RoleValue{{Name: "tenant", Expression: `"acme"`}}}, {Name: "anyone", When: "false"}},
		Watches: []access.WatchRules{{Name: "orders", Rules: rules}},
	})
	if err != nil {
		t.Fatal(err)
	}
	started.Access = &changed
	if err := r.gateway.Reload(started); err != nil {
		t.Fatal(err)
	}
	s.until("epoch_changed")
	s.until("end_of_snapshot")
	var got []string
	views := map[string]bool{}
	for _, e := range r.lines(out) {
		got = append(got, brief(e))
		views[e.View] = true
	}
	want := []string{"allowed open token agentorders acme#2 anyone#3 part", "allowed move token agentorders acme#2 part"}
	if !slices.Equal(got, want) || len(views) != 2 {
		t.Errorf("got\n%s\nwant\n%s\nwith another view", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRefusedCredentialsDoNotFillTheLog, over HTTP and gRPC: most are only counted.
func TestRefusedCredentialsDoNotFillTheLog(t *testing.T) {
	r, out := audited(t, nil)
	for range 50 {
		r.get("/v1/watches/orders", "Authorization: Bearer wrong")
		r.get("/v1/watches/vault")
	}
	counted, lines := uint64(0), 0
	for _, e := range r.lines(out) {
		if e.Action == access.Repeated {
			counted += e.Count
		} else {
			lines++
		}
	}
	if lines > 10 || uint64(lines)+counted != 100 {
		t.Errorf("%d lines and %d counted, want 100 together", lines, counted)
	}
}

// TestSwitchByDigest: a stream that resumes by digest verifies what may be seen now, in place of a reset.
func TestSwitchByDigest(t *testing.T) {
	var started Config
	r, _ := audited(t, func(c *Config) { started = *c })
	s := r.follow("ann", "/v1/watches/orders/events?resume=digest", "identity")
	s.until("end_of_snapshot")
	narrower, err := access.CompilePolicy(access.PolicyConfig{
		Roles:   []access.Role{{Name: "anyone", When: "true"}},
		Watches: []access.WatchRules{{Name: "orders", Rules: []access.Rule{{Role: "anyone", Read: `value.owner == principal.name`, Fields: []string{"eta"}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	changed := *started.Access
	changed.Policy, changed.OperationsRole = narrower, ""
	started.Access = &changed
	began := len(s.seen)
	if err := r.gateway.Reload(started); err != nil {
		t.Fatal(err)
	}
	s.until(`"verify":true`)
	text := strings.Join(s.seen[began:], "\n")
	_, of, _ := strings.Cut(text, `"verify":true,"digest":"`)
	of, _, _ = strings.Cut(of, `"`)
	if strings.Contains(text, `"reset"`) || strings.Contains(text, `"upsert"`) || !strings.Contains(text, `"catching_up"`) {
		t.Errorf("the stream goes on with\n%s", text)
	}
	path := "/v1/watches/orders/digests/" + of
	if got := r.send(http.MethodGet, path+"/resources?key=o_1", "", r.as("ann")...); got.StatusCode != 200 || !strings.Contains(got.text, `"value":{"eta":1}}`) || strings.Contains(got.text, "s3cret") {
		t.Errorf("%s: %d %s, of\n%s\n%s", path, got.StatusCode, got.text, text, r.send(http.MethodGet, "/v1/watches/orders/resources", "", r.as("ann")...).text)
	}
	if got := r.send(http.MethodGet, path, ""); got.StatusCode == 200 {
		t.Errorf("without a credential: %d %s", got.StatusCode, got.text)
	}
}
