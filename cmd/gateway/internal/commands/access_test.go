package commands

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/access"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// withAccess is a configuration with rules. Behind it is a file of tokens.
const withAccess = `
auth: { tokens_file: %TOKENS% }
operations: { role: staff }
sources: { local: { type: store } }
roles:
  anyone: { when: "true" }
  staff:  { when: '"staff" in principal.groups' }
  acme:   { when: '"acme" in principal.groups', with: { tenant: '"acme"' } }
watches:
  orders:
    source: local
    allow:
      - { role: staff, read: "true", write: "true", delete: "true" }
      - { role: acme, read: value.tenant == role.tenant, fields: [status] }
  vault:  { source: local, allow: [{ role: staff, read: "true", write: "true" }] }
  closed: { source: local }
  open-orders:   { view_of: orders, filter: 'value.status == "open"' }
  acme-orders:   { view_of: orders, filter: 'value.tenant == "acme"', fields: [status], allow: [{ role: anyone, read: "true", write: "true" }] }
  "vault-{region}": { source: local, params: { region: "[a-z]+" }, allow: [{ role: staff, read: "true", write: "true" }] }
`

// protected is a gateway with rules, and the tokens of its clients.
type protected struct {
	*served
	tokens map[string]string
}

// serveProtected starts a gateway with a configuration. %TOKENS% stands for the file of
// tokens.
func serveProtected(t *testing.T, configuration string, args ...string) protected {
	t.Helper()
	tokens, lines := map[string]string{}, ""
	for name, groups := range map[string][]string{"sam": {"staff"}, "agent": {"acme"}, "outsider": nil} {
		text, line, err := access.NewToken(name, groups)
		if err != nil {
			t.Fatal(err)
		}
		tokens[name], lines = text, lines+strings.TrimSpace(line)+"\n"
	}
	configuration = strings.ReplaceAll(configuration, "%TOKENS%", file(t, "tokens", lines))
	return protected{serve(t, append([]string{"--config", file(t, "gateway.yaml", configuration)}, args...)...), tokens}
}

// ask sends a request of somebody to an address, and returns the status and the body.
func (p protected) ask(who, method, address, path, body string) (int, string) {
	p.t.Helper()
	return fetch(p.t, withToken(p.tokens[who]), method, "http://"+address+path, body)
}

// withToken is a transport that sends a token; none if it is empty.
type withToken string

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if w != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(w))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestServeWithRules checks what each client of a whole gateway sees and changes, over
// every listener.
func TestServeWithRules(t *testing.T) {
	p := serveProtected(t, withAccess)
	for key, value := range map[string]string{"o_1": `{"tenant":"acme","status":"open","margin":"s3cret-1"}`, "o_2": `{"tenant":"globex","status":"open","margin":"s3cret-2"}`} {
		if code, answer := p.ask("sam", "PUT", p.http, "/v1/watches/orders/resources/"+key, value); code != 201 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	for _, c := range []struct {
		who, method, path string
		code              int
		want              string
	}{
		{"sam", "GET", "/v1/watches/orders/resources", 200, "s3cret-2"},
		{"sam", "GET", "/v1/watches/vault-eu/resources", 200, `"count":0`},
		{"sam", "GET", "/v1/watches/closed", 404, "there is no watch"},
		{"sam", "GET", "/v1/watches/open-orders", 404, "there is no watch"},
		{"agent", "GET", "/v1/watches/orders/resources", 200, `"count":1,"resources":[{"key":"o_1","revision":`},
		{"agent", "GET", "/v1/watches/orders/resources/o_2", 404, "has no resource"},
		{"agent", "PUT", "/v1/watches/orders/resources/o_1", 403, "no rule of watch"},
		{"agent", "DELETE", "/v1/watches/orders/resources/o_1", 403, "no rule of watch"},
		{"agent", "GET", "/v1/watches/vault", 404, "there is no watch"},
		{"agent", "GET", "/v1/watches/vault-eu", 404, "there is no watch"},
		{"agent", "GET", "/v1/watches/open-orders/resources", 404, "there is no watch"},
		{"outsider", "GET", "/v1/watches/orders", 404, "there is no watch"},
		{"outsider", "GET", "/v1/watches/acme-orders/resources", 200, `"value":{"status":"open"}`},
		{"outsider", "PUT", "/v1/watches/acme-orders/resources/o_1", 405, ""},
		{"", "GET", "/v1/watches/acme-orders/resources", 200, `"value":{"status":"open"}`},
		{"", "GET", "/v1/watches/orders/resources", 401, ""},
		{"", "GET", "/v1/watches/zzzzz/resources", 401, ""},
		{"", "GET", "/metrics", 403, ""},
		{"agent", "GET", "/v1/subscribers", 403, ""},
		{"agent", "GET", "/debug/pprof/cmdline", 404, ""},
		{"sam", "GET", "/metrics", 200, "watchtide_"},
	} {
		code, answer := p.ask(c.who, c.method, p.http, c.path, bodyOf(c.method))
		if code != c.code || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %s %s: %d %.300s, want %d and %s", c.who, c.method, c.path, code, answer, c.code, c.want)
		}
		if secret := strings.Contains(answer, "s3cret") || strings.Contains(answer, "o_2") && !strings.Contains(c.path, "o_2"); secret && c.who != "sam" {
			t.Errorf("%s: %s %s: %s", c.who, c.method, c.path, answer)
		}
	}
	if code, _ := p.ask("", "GET", p.operations, "/metrics", ""); code != 200 {
		t.Errorf("Prometheus on loopback: %d", code)
	}
	if code, answer := p.ask("", "GET", p.operations, "/v1/watches/orders/resources", ""); code != 401 {
		t.Errorf("data on the operations listener: %d %s", code, answer)
	}
	p.checkGRPC()
}

func bodyOf(method string) string {
	if method == http.MethodPut {
		return "{}"
	}
	return ""
}

// checkGRPC checks who may list the resources over gRPC.
func (p protected) checkGRPC() {
	p.t.Helper()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	for who, want := range map[string]codes.Code{"sam": codes.OK, "outsider": codes.NotFound, "": codes.Unauthenticated, "nobody known": codes.Unauthenticated} {
		ctx := p.t.Context()
		if who != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+cmp.Or(p.tokens[who], "wrong"))
		}
		_, err := api.NewWatchServiceClient(conn).ListResources(ctx, &api.ListResourcesRequest{Watch: "orders"})
		if status.Code(err) != want {
			p.t.Errorf("%s: %v, want %s", who, err, want)
		}
	}
}

// TestServeStreamsByRules checks that a stream follows what its client may see: a resource
// that moves out of sight is deleted, and one that is out of sight does not appear.
func TestServeStreamsByRules(t *testing.T) {
	p := serveProtected(t, withAccess)
	put := func(key, value string) {
		t.Helper()
		if code, answer := p.ask("sam", "PUT", p.http, "/v1/watches/orders/resources/"+key, value); code >= 300 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	put("o_1", `{"tenant":"acme","status":"s1","margin":1}`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/v1/watches/orders/events?format=ndjson", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := withToken(p.tokens["agent"]).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			line := lines.Text()
			if strings.Contains(line, "margin") || strings.Contains(line, "globex") || strings.Contains(line, "o_2") {
				t.Fatalf("what is hidden is in %s", line)
			}
			if strings.HasPrefix(line, want) {
				return
			}
		}
		t.Fatalf("no %s: %v", want, lines.Err())
	}
	next(`{"type":"upsert","watch":"orders","key":"o_1","revision":"1","value":{"status":"s1"}`)
	put("o_2", `{"tenant":"globex","status":"s2"}`)
	put("o_1", `{"tenant":"acme","status":"s3","margin":2}`)
	next(`{"type":"upsert","watch":"orders","key":"o_1","revision":"3","value":{"status":"s3"}`)
	put("o_1", `{"tenant":"globex","status":"s4"}`)
	next(`{"type":"delete","watch":"orders","key":"o_1","revision":"4"`)
	put("o_1", `{"tenant":"acme","status":"s5"}`)
	next(`{"type":"upsert","watch":"orders","key":"o_1","revision":"5","value":{"status":"s5"}`)
}

// TestExposure checks which listeners a configuration may have.
func TestExposure(t *testing.T) {
	const watches = "\nsources: { local: { type: store } }\nroles: { staff: { when: '\"staff\" in principal.groups' } }\nwatches: { notes: { source: local } }\n"
	_, line, err := access.NewToken("sam", []string{"staff"})
	if err != nil {
		t.Fatal(err)
	}
	tokens := file(t, "tokens", line+"\n")
	for name, c := range map[string]struct{ configuration, want string }{
		"http for all, no auth":               {"http: { listen: '0.0.0.0:0' }\nsources: { local: { type: store } }\nwatches: { notes: { source: local } }", "http.listen"},
		"gRPC for all, no auth":               {"grpc: { listen: ':0' }\nsources: { local: { type: store } }\nwatches: { notes: { source: local } }", "grpc.listen"},
		"operations for all, no auth":         {"operations: { listen: '[::]:0' }\nsources: { local: { type: store } }\nwatches: { notes: { source: local } }", "operations.listen"},
		"operations for all, no role":         {"auth: { tokens_file: " + tokens + " }\noperations: { listen: '0.0.0.0:0' }" + watches, "operations.role"},
		"operations for all by name, no role": {"auth: { tokens_file: " + tokens + " }\noperations: { listen: ':0' }" + watches, "operations.role"},
		"a role that is not there":            {"auth: { tokens_file: " + tokens + " }\noperations: { role: stff }" + watches, "operations.role"},
		"rules, and nobody is asked":          {"auth: none" + watches, "auth"},
		"rules without auth":                  {watches, "auth"},
	} {
		configuration := file(t, "gateway.yaml", c.configuration)
		for _, args := range [][]string{{"serve", "--config", configuration}, {"config", "check", configuration}} {
			code, _, stderr := command(t, args...)
			if code == 0 || !strings.Contains(stderr, configuration+":") || !strings.Contains(stderr, c.want) {
				t.Errorf("%s: %s: exit code %d: %s\nwant %s with line and column", args[0], name, code, stderr, c.want)
			}
		}
	}
	code, _, stderr := command(t, "serve", "--operations", "0.0.0.0:0", "--config", file(t, "gateway.yaml", "auth: { tokens_file: "+tokens+" }"+watches))
	if code == 0 || !strings.Contains(stderr, "operations.role") {
		t.Errorf("operations for all by a flag: exit code %d: %s", code, stderr)
	}
}

// TestServeOnOtherAddresses checks that with auth, all listeners may be reached from other
// machines, and that operators have to say who they are then.
func TestServeOnOtherAddresses(t *testing.T) {
	p := serveProtected(t, withAccess, "--http", "0.0.0.0:0", "--grpc", "0.0.0.0:0", "--operations", "0.0.0.0:0")
	at := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return net.JoinHostPort("127.0.0.1", port)
	}
	for _, path := range []string{"/metrics", "/v1/subscribers", "/debug/pprof/cmdline", "/debug/pprof/"} {
		for who, want := range map[string]int{"": 403, "agent": 403, "outsider": 403, "sam": 200} {
			if code, answer := p.ask(who, "GET", at(p.operations), path, ""); code != want {
				t.Errorf("%q: %s: %d %.200s, want %d", who, path, code, answer, want)
			}
		}
	}
	if code, answer := p.ask("agent", "GET", at(p.http), "/v1/watches/vault", ""); code != 404 {
		t.Errorf("%d %s", code, answer)
	}
}

// TestOpennessIsLogged at start, however it is said, and only then.
func TestOpennessIsLogged(t *testing.T) {
	const watches = "sources: { local: { type: store } }\nwatches: { notes: { source: local } }\n"
	for name, c := range map[string]struct {
		configuration string
		flags         []string
		logged        bool
	}{
		"in the file": {"auth: none\n" + watches, nil, true},
		"by the flag": {watches, []string{"--auth", "none"}, true},
		"not at all":  {watches, nil, false},
		"credentials": {"auth: {}\n" + watches, nil, false},
	} {
		r := start(t, append([]string{"serve", "--config", file(t, "gateway.yaml", c.configuration), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--operations", "off"}, c.flags...)...)
		logs := r.logs.await(t, `"listening"`)
		if strings.Contains(logs, `"level":"WARN","msg":"nobody is asked for credentials`) != c.logged {
			t.Errorf("%s: %s", name, logs)
		}
	}
}
