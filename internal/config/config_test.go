package config

import (
	"errors"
	"flag"
	"fmt"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/source/adapter"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fakeEnvironment has a few variables and files, and nothing of this machine.
func fakeEnvironment() Environment {
	variables := map[string]string{
		"HOST": "127.0.0.1", "PORT": "7000", "YES": "true", "N": "12", "EMPTY": "",
		"SECRET": "hunter2", "SECRET_LINES": "hunter2\nhunter2",
	}
	files := map[string]string{
		"etc/token": "s3cret\n", "etc/empty": "", "etc/lines": "a\nb\n", "/run/token": "absolute",
	}
	return Environment{
		Getenv: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		ReadFile: func(name string) ([]byte, error) {
			if data, ok := filesOfAuth()[name]; ok {
				return []byte(data), nil
			}
			if data, ok := files[name]; ok {
				return []byte(data), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		},
	}
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
	if err != nil {
		t.Fatalf("Parse:\n%v", err)
	}
	return c
}

// TestErrors compares every error of every file in testdata/errors.txt with
// testdata/errors.golden.
func TestErrors(t *testing.T) {
	cases, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, part := range strings.Split(string(cases), "=== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		_, err := Parse("etc/gateway.yaml", []byte(text), withModes(fakeEnvironment()))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		fmt.Fprintf(&got, "=== %s\n%s\n", name, strings.ReplaceAll(err.Error(), "etc/gateway.yaml:", ""))
	}
	golden := filepath.Join("testdata", "errors.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	compareSections(t, got.String(), string(want))
	if strings.Contains(got.String(), "hunter2") {
		t.Error("an error shows the value of an environment variable")
	}
}

func compareSections(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "=== "), strings.Split(want, "=== ")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			t.Errorf("missing:\n%s", w[i])
		case i >= len(w):
			t.Errorf("not in the golden file:\n%s", g[i])
		case g[i] != w[i]:
			t.Errorf("got:\n%s\nwant:\n%s", g[i], w[i])
		}
	}
}

func TestErrorNamesFileLineAndColumn(t *testing.T) {
	_, err := Parse("etc/gateway.yaml", []byte("stream:\n  heartbeet: 15s\n"), fakeEnvironment())
	var all Errors
	if !errors.As(err, &all) || len(all) != 1 {
		t.Fatalf("got %v, want one error", err)
	}
	const want = `etc/gateway.yaml:2:3: unknown key "heartbeet" in stream; did you mean "heartbeat"?`
	if all[0].Error() != want {
		t.Errorf("got  %s\nwant %s", all[0], want)
	}
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "http:\nstream:\nsources:\n", "null"} {
		if c := parse(t, text); !reflect.DeepEqual(c, Default()) {
			t.Errorf("%q: got %+v", text, c)
		}
	}
}

const everything = `
http: { listen: "${HOST}:${PORT}", hosts: [app.example.com, "*.example.org"], allowed_origins: ["https://app.example.com", "http://localhost:3000"], allowed_headers: [X-Tenant], trusted_proxies: ["10.0.0.0/8", "2001:db8::1"], forwarded_header: Forwarded, max_connections: 35, max_handshakes: 36, max_handshakes_per_client: 37, body_budget: 33MiB, answer_budget: 34MiB, delivery_reports: true }
grpc: { listen: ":0" }
operations: { listen: "0.0.0.0:7002", flight_recorder: true }
tracing: { endpoint: "https://collector:4317", protocol: grpc, requests_per_second: 21, client_requests_per_second: 22, slow_snapshot: 2s, slow_commit: 300ms }
auth: none
stream:
  heartbeat: 20s
  write_timeout: 11s
  min_rate: 8KiB
  retry: 3s
  max_age: 1h30m
  drain_delay: 7s
  drain: 5s
  ahead_wait: 4s
  prime_wait: 6s
  digest: off
  stale_allowed: 7m
  max_subscribers: ${N}
  snapshot_budget: 32MiB
  max_subscribers_per_client: 3
  max_subscribers_per_watch: 4
  max_views: 5
  max_views_per_client: 2
  max_orders_per_client: 1
  view_linger: 40s
  max_count_groups: 50
  pump: goroutines
  compression: none
  compression_cache: 5MiB
  memory: { watch: 1GiB, total: 3GiB, views: 100MiB }
  history: &h { max_age: 20m, max_deletes: 2_000, max_bytes: 64MiB }
metrics: { enabled: false }
state: { dir: /var/lib/watchtide, max_age: 3h }
sources:
  local: { type: store, path: /srv/notes.db, max_value_bytes: 65536, max_bytes: 1GiB }
  machine: { type: host, interval: 2s }
  backend:
    type: grpc
    address: dns:///backend:9000
    tls: { server_name: backend.internal }
    metadata: { X-Team: "a $${b}" }
    metadata_files: { authorization: token, x-other: /run/token }
    keepalive: 30s
    stall_after: 1m
    max_message_bytes: 4MiB
    retry_max: 2m
watches:
  notes: { source: local, prime: "${YES}", required: true, history: *h }
  processes: { source: machine, collection: processes, prime: false, linger: 10s }
  services: { source: backend, snapshot_timeout: 90s, memory: 2GiB, history: { max_deletes: 5 } }
  nodes: { source: backend, watch: nodes.v2, prefix: "eu/", journal: none }
`

// everythingElse has the keys of the source types that have their own test file.
var everythingElse = []string{
	"sources: { local: { type: store } }\nwatches: { a: { source: local }, b: { view_of: a, filter: 'true', labels: x, fields: [y] }, c: { view_of: a, by: [x], sum: y }, d: { view_of: a, order: n, limit: 5, offset: 2 } }",
	everyKeyOfFiles,
	everyKeyOfEtcd,
	everyKeyOfGateway,
	grpcWithToken,
	everyKeyOfNATS,
	everyKeyOfKubernetes,
	everyKeyOfConsul,
	everyKeyOfPostgres,
	everyKeyOfTemplates,
	everyKeyOfAccess,
	everyKeyOfAuth,
	everyKeyOfCluster,
	accessToReplicas,
}

const accessToReplicas = `
operations:
  replicas: ["dns+https://watchtide-replicas:8081"]
  replicas_token_file: token
  replicas_tls: { server_name: operations.internal }
`

// TestAccessToReplicas: the token is in the configuration, and in nothing that is printed.
func TestAccessToReplicas(t *testing.T) {
	c := parse(t, accessToReplicas)
	o := c.Operations
	if string(o.ReplicasToken) != "s3cret" || o.ReplicasTLS == nil || o.ReplicasTLS.ServerName != "operations.internal" {
		t.Errorf("got %+v", o)
	}
	if text := fmt.Sprintf("%v %+v %#v", o, c, o); strings.Contains(text, "s3cret") {
		t.Error("the token is printed")
	}
}

// TestEveryOption sets every key of the format to a value other than its
// default, and finds each of them in the result.
func TestEveryOption(t *testing.T) {
	c := parse(t, everything)
	history := watch.Retention{MaxAge: 20 * time.Minute, MaxDeletes: 2000, MaxBytes: 64 << 20}
	if c.Sources[2].Contents == "" {
		t.Error("the files that were read are not recorded")
	}
	c.Sources[2].Contents = "" // a hash
	tlsConfig := c.Sources[2].GRPC.TLS
	if tlsConfig == nil || tlsConfig.ServerName != "backend.internal" {
		t.Fatalf("tls: got %+v", tlsConfig)
	}
	want := &Config{
		HTTP:       HTTP{Listen: "127.0.0.1:7000", HTTPSettings: gateway.HTTPSettings{Hosts: []string{"app.example.com", "*.example.org"}, AllowedOrigins: []string{"https://app.example.com", "http://localhost:3000"}, AllowedHeaders: []string{"X-Tenant"}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}, ForwardedHeader: "Forwarded", MaxConnections: 35, MaxHandshakes: 36, MaxHandshakesPerClient: 37, BodyBudget: 33 << 20, AnswerBudget: 34 << 20, DeliveryReports: true}},
		GRPC:       GRPC{Listen: ":0"},
		Operations: Operations{Listen: "0.0.0.0:7002", FlightRecorder: true},
		Tracing: Tracing{Endpoint: "https://collector:4317", Protocol: "grpc", RequestsPerSecond: 21, ClientRequestsPerSecond: 22,
			SlowSnapshot: 2 * time.Second, SlowCommit: 300 * time.Millisecond},
		Auth:  Auth{None: true},
		State: State{Dir: "/var/lib/watchtide", MaxAge: 3 * time.Hour},
		Stream: Stream{
			StreamSettings: gateway.StreamSettings{Heartbeat: 20 * time.Second, WriteTimeout: 11 * time.Second, MinRate: 8 << 10, Retry: 3 * time.Second, MaxAge: 90 * time.Minute, DrainDelay: 7 * time.Second, Drain: 5 * time.Second, AheadWait: 4 * time.Second, PrimeWait: 6 * time.Second, StaleAllowed: 7 * time.Minute, MaxSubscribers: 12, SnapshotBudget: 32 << 20, MaxSubscribersPerClient: 3, MaxSubscribersPerWatch: 4, Pump: "goroutines", Compression: "none", Digest: "off", CompressionCache: 5 << 20},
			MaxViews:       5, MaxViewsPerClient: 2, MaxOrdersPerClient: 1, ViewLinger: 40 * time.Second, MaxCountGroups: 50,
			Memory: Memory{Watch: 1 << 30, Total: 3 << 30, Views: 100 << 20}, History: history,
		},
		Sources: []Source{
			{Name: "local", Type: Store, Store: store.Config{Path: "/srv/notes.db", MaxValueBytes: 65536, MaxBytes: 1 << 30}},
			{Name: "machine", Type: Host, Host: host.Config{Interval: 2 * time.Second}},
			{Name: "backend", Type: GRPCs, RetryMax: 2 * time.Minute, GRPC: grpcsource.Config{
				Address: "dns:///backend:9000", TLS: tlsConfig,
				Metadata:  adapter.Metadata{"x-team": {Text: "a ${b}"}, "authorization": {File: "etc/token"}, "x-other": {File: "/run/token"}},
				Keepalive: 30 * time.Second, StallAfter: time.Minute, MaxMessageBytes: 4 << 20,
			}},
		},
		Watches: []Watch{
			{Name: "notes", Source: "local", Prime: true, Required: true, Memory: 1 << 30, History: history},
			{Name: "processes", Source: "machine", Linger: 10 * time.Second, Memory: 1 << 30, History: history, Selection: Selection{Collection: "processes"}},
			{Name: "services", Source: "backend", Prime: true, SnapshotTimeout: 90 * time.Second, Memory: 2 << 30, Selection: Selection{Watch: "services"},
				History: watch.Retention{MaxAge: history.MaxAge, MaxDeletes: 5, MaxBytes: history.MaxBytes}},
			{Name: "nodes", Source: "backend", Prime: true, Memory: 1 << 30, History: history, Journal: JournalNone, Selection: Selection{Watch: "nodes.v2", Prefix: "eu/"}},
		},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
}

// TestEveryOptionIsSet finds a field of the result that no key of everything, and
// of everythingElse, sets. tls names files; see TestErrors and the tests of the
// command.
func TestEveryOptionIsSet(t *testing.T) {
	set := map[string]bool{}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && !notInFile(v.Type(), f) {
					walk(path+"."+f.Name, v.Field(i))
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		default:
			set[path] = set[path] || !v.IsZero()
		}
	}
	c := parse(t, everything)
	c.Metrics.Enabled = !c.Metrics.Enabled // false is not the default
	walk("", reflect.ValueOf(*c))
	for _, text := range everythingElse {
		walk("", reflect.ValueOf(*parse(t, text)))
	}
	for path, ok := range set {
		if !ok && path != ".HTTP.TLS" && path != ".GRPC.TLS" && path != ".Operations.TLS" {
			t.Errorf("no key of everything sets %s", path)
		}
	}
	if len(set) < 35 {
		t.Errorf("looked at %d fields only", len(set))
	}
}

// notInFile reports whether a field of a source is not of the configuration.
func notInFile(of reflect.Type, f reflect.StructField) bool {
	return of.PkgPath() != reflect.TypeFor[Config]().PkgPath() && f.Tag.Get("yaml") == "-"
}

func TestFileOfAnEditor(t *testing.T) {
	if c := parse(t, "\ufeffhttp: { listen: \"127.0.0.1:7000\" }\r\n"); c.HTTP.Listen != "127.0.0.1:7000" {
		t.Errorf("after a byte order mark: got %q", c.HTTP.Listen)
	}
	for _, text := range []string{"\xff\xfeh\x00t\x00", "# caf\xe9\nhttp: {}"} {
		_, err := Parse("f", []byte(text), fakeEnvironment())
		if err == nil || err.Error() != "f:1:1: the file is not UTF-8" {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestZeroTurnsOff(t *testing.T) {
	c := parse(t, "stream: { max_age: 0s, drain_delay: 0s, drain: 0s }\nsources: { b: { type: grpc, address: \"a:1\", keepalive: 0s } }")
	if c.Stream.MaxAge != Off || c.Stream.DrainDelay != Off || c.Stream.Drain != Off || c.Sources[0].GRPC.Keepalive != Off {
		t.Errorf("got %v, %v, %v, %v, want Off", c.Stream.MaxAge, c.Stream.DrainDelay, c.Stream.Drain, c.Sources[0].GRPC.Keepalive)
	}
}

func TestVariableIsTextNeverYAML(t *testing.T) {
	env := fakeEnvironment()
	env.Getenv = func(string) (string, bool) { return "a: {b, *c, ${HOST}", true }
	c, err := Parse("f", []byte("sources: { s: { type: grpc, address: \"a:1\", metadata: { x: \"${X}\" } } }"), env)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Sources[0].GRPC.Metadata["x"].Text; got != "a: {b, *c, ${HOST}" {
		t.Errorf("got %q", got)
	}
}

func TestMetadataIsNeverShown(t *testing.T) {
	c := parse(t, everything)
	var out strings.Builder
	logger := slog.New(slog.NewJSONHandler(&out, nil))
	logger.Info("x", "metadata", c.Sources[2].GRPC.Metadata, "source", fmt.Sprintf("%+v", c.Sources[2]))
	fmt.Fprintf(&out, "%v %+v %#v %s %q", *c, *c, *c, c.Sources[2].GRPC.Metadata, c.Sources[2].GRPC.Metadata)
	if strings.Contains(out.String(), "s3cret") {
		t.Errorf("shown: %s", out.String())
	}
}

func TestLoadReportsWhyAFileCannotBeRead(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), Environment{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func TestFileThatIsTooLarge(t *testing.T) {
	_, err := Parse("f", make([]byte, MaxFileBytes+1), fakeEnvironment())
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("got %v", err)
	}
}
