package config

import (
	"github.com/watchtide/watchtide/internal/source/adapter"
	gatewaysource "github.com/watchtide/watchtide/internal/source/gateway"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/view"
)

const everyKeyOfGateway = `
sources:
  core:
    type: gateway
    url: https://core.example.com/gw
    tls: { server_name: core }
    token_file: token
    headers: { x-team: web }
    header_files: { x-api-key: /run/token }
    stall_after: 1m
    max_event_bytes: 32MiB
watches: { services: { source: core, watch: all, prefix: "web/" }, nodes: { source: core } }
`

func TestGatewaySource(t *testing.T) {
	c := parse(t, everyKeyOfGateway)
	got := c.Sources[0].Gateway
	if got.TLS == nil || got.TLS.ServerName != "core" {
		t.Errorf("TLS is %+v, want the server name core", got.TLS)
	}
	got.TLS = nil
	want := gatewaysource.Config{
		URL: "https://core.example.com/gw", TokenFile: "etc/token", StallAfter: time.Minute, MaxEventBytes: 32 << 20,
		Headers: adapter.Metadata{"X-Team": {Text: "web"}, "X-Api-Key": {File: "/run/token"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if w := c.Watches[0]; w.Watch != "all" || w.Prefix != "web/" {
		t.Errorf("watch %q, prefix %q", w.Watch, w.Prefix)
	}
	if w := c.Watches[1]; w.Watch != "nodes" || w.Prefix != "" {
		t.Errorf("watch %q, prefix %q, want the watch's own name", w.Watch, w.Prefix)
	}
}

// TestGatewayWatchIsNarrowedUpstream checks what the source of each watch is asked for.
func TestGatewayWatchIsNarrowedUpstream(t *testing.T) {
	c := parse(t, `
sources: { core: { type: gateway, url: "http://core:8080" } }
watches:
  failing: { source: core, watch: services, filter: '(value.state)!="passing"', labels: "app in (web,shop)", fields: [state, "node,zone"], prefix: eu/ }
  all: { source: core, watch: services, labels_at: meta.tags }
  red: { view_of: failing, labels: team=red }
`)
	want := view.Params{
		Prefix: "eu/", Labels: "app in (shop,web)", Filter: `value.state != "passing"`, Fields: []string{"node", "state", "zone"}, LabelsAt: "labels",
	}
	if d := c.Watches[0].Definition; d == nil || !reflect.DeepEqual(d.Params(), want) {
		t.Errorf("failing is narrowed by %+v, want %+v", d, want)
	}
	if d := c.Watches[1].Definition; d != nil {
		t.Errorf("all is narrowed by %+v, want nothing", d.Params())
	}
	if d := c.Watches[2].Definition; d == nil || d.Params().Labels != "team=red" || d.Params().Filter != "" {
		t.Errorf("red is narrowed by %+v, want the labels only", d)
	}
}

// TestGatewayWatchErrors checks that a mistake is found before there is a connection, and
// is reported at its place. What comes from the environment is not shown.
func TestGatewayWatchErrors(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"a filter that cannot be meant", `filter: "value.n = 1"`, "etc/gateway.yaml:4:37: watches.services.filter: column 9: = is no operator: did you mean ==?"},
		{"labels that cannot be meant", `labels: "a in ("`, "etc/gateway.yaml:4:37: watches.services.labels: column "},
		{"a field that cannot be meant", `fields: [a, "b..c"]`, "etc/gateway.yaml:4:41: watches.services.fields[1]: column 3: "},
		{"a field in a text", `fields: "a"`, "etc/gateway.yaml:4:37: watches.services.fields: want a list, not text"},
		{"a prefix that is too long", `prefix: "` + strings.Repeat("x", 3000) + `"`, "etc/gateway.yaml:4:37: watches.services.prefix: column 2049: the text is 3000 bytes long, and at most 2048 are allowed"},
		{"a filter with a variable", `filter: "value.n == 1 && ${TOKEN}"`, "etc/gateway.yaml:4:37: watches.services.filter: line 1, column 17 of the text is wrong; what ${NAME} stands for is not shown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "\nsources: { core: { type: gateway, url: \"http://core\" } }\nwatches:\n  services: { source: core, " + c.keys + " }\n"
			env := fakeEnvironment()
			env.Getenv = func(string) (string, bool) { return "s3cret(1)", true }
			_, err := Parse("etc/gateway.yaml", []byte(text), env)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

func TestGatewaySourceErrors(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"no url", `stall_after: 1s`, "sources.core: url is missing, which a source of type gateway must have"},
		{"no scheme", `url: "core:8080"`, `sources.core.url: "core:8080": want a URL such as`},
		{"a password in the url", `url: "https://u:p@core"`, "want a URL such as"},
		{"tls for http", `url: "http://core", tls: {}`, "sources.core: tls is given for a url that begins with http: want https, or no tls"},
		{"a token in the file", `url: "http://core", token: x`, `unknown key "token" in sources.core`},
		{"no such file", `url: "http://core", token_file: nowhere`, `sources.core.token_file: "nowhere" cannot be read`},
		{"two lines", `url: "http://core", token_file: lines`, "sources.core.token_file: the file must hold one line"},
		{"a credential", `url: "http://core", headers: { authorization: x }`, "name the file in header_files"},
		{"not a header", `url: "http://core", headers: { "a b": x }`, "want the name of an HTTP header"},
		{"a header of the stream", `url: "http://core", headers: { last-event-id: x }`, "want the name of an HTTP header that is not the stream's own"},
		{"a header twice", `url: "http://core", headers: { x-a: x }, header_files: { X-A: token }`, `"X-A" is already in headers or header_files`},
		{"token and header", `url: "http://core", token_file: token, header_files: { authorization: token }`, "want token_file, or a header Authorization, not both"},
		{"too large", `url: "http://core", max_event_bytes: 4GiB`, "want less than 2GiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "sources: { core: { type: gateway, " + c.keys + " } }\nwatches: { services: { source: core } }\n"
			_, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// grpcWithToken has a token in place of the credentials in the metadata of everything.
const grpcWithToken = `
sources: { core: { type: grpc, address: "core:9000", token_file: token } }
watches: { services: { source: core } }
`

func TestGRPCTokenFile(t *testing.T) {
	if got := parse(t, grpcWithToken).Sources[0].GRPC.TokenFile; got != "etc/token" {
		t.Errorf("token file %q", got)
	}
	_, err := Parse("etc/gateway.yaml", []byte(strings.Replace(grpcWithToken, "token_file: token", "token_file: nowhere", 1)), fakeEnvironment())
	if want := `sources.core.token_file: "nowhere" cannot be read`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
}
