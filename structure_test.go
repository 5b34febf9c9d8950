// Package watchtide_test holds the tests of the repository's structure: permitted
// imports, where documentation belongs, and what the code must not contain.
package watchtide_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/watchtide/watchtide"

// imports lists which packages of this repository a package may import, tests
// aside. The first pattern that matches a package counts, so the table is to be
// read from the top. DESIGN.md draws the same picture.
var imports = []struct {
	of  string // path.Match pattern, relative to the module
	may []string
	why string
}{
	{"stream/internal/signal", nil, "something has happened, whatever it is; a leaf"},
	{"stream/internal/sizes", nil, "numbers; a leaf"},
	{"stream/memory", nil, "memory counts bytes, and knows no log"},
	{"stream/log/internal/segment", []string{"stream", "stream/internal/sizes"}, "it stores entries, and knows no order among segments"},
	{"stream/log/internal/index", nil, "it maps hashes to numbers; a leaf"},
	{"stream/log/internal/notify", nil, "it calls functions; a leaf"},
	{"stream/log/internal/transaction", []string{"stream"}, "changes on their way into a log"},
	{"stream/log/internal/compacted", []string{"stream/internal/sizes", "stream/log/internal/segment"}, "it copies entries, and decides nothing"},
	{"stream/log/internal/superseded", nil, "it counts bytes; a leaf"},
	{"stream/log/internal/committed", nil, "times of numbers; a leaf"},
	{"stream/log/internal/tombstone", nil, "a queue of numbers; a leaf"},
	{"stream/log/internal/version", []string{"stream", "stream/internal/signal", "stream/log/internal/committed", "stream/log/internal/segment", "stream/log/internal/index"}, "a version is read; it is made by the log"},
	{"stream/log/internal/pin", []string{"stream/memory", "stream/log/internal/version"}, "pins count the memory of versions, and read none"},
	{"stream/log/internal/listing", []string{"stream", "stream/internal/sizes", "stream/log/internal/segment", "stream/log/internal/version", "stream/log/internal/pin"}, "a listing is handed the version that it reads"},
	{"stream/log/internal/extent", nil, "numbers of bytes and of entries; a leaf"},
	{"stream/log/internal/flush", []string{"stream", "stream/frame", "stream/internal/sizes", "stream/log/internal/extent", "stream/log/internal/segment"}, "a flush refers to entries, and knows no order among them"},
	{"stream/log/internal/difference", []string{"stream", "stream/internal/sizes", "stream/memory", "stream/log/internal/segment", "stream/log/internal/version"}, "it compares versions, and knows no readers"},
	{"stream/frame", []string{"stream"}, "events as text, whoever has them"},
	{"stream/log", []string{"stream", "stream/internal/signal", "stream/internal/sizes", "stream/memory", "stream/log/internal/*"}, "a log knows no source and no watch: it is written by one"},
	{"stream/watch", []string{"stream", "stream/internal/signal", "stream/memory", "stream/log"}, "a watch feeds a log from any source"},
	{"stream/view/internal/mistake", nil, "a problem and its place; a leaf"},
	{"stream/view/internal/path", []string{"stream", "stream/view/internal/mistake"}, "names of members, and no values"},
	{"stream/view/internal/document", []string{"stream/view/internal/path"}, "it reads values, and knows no filters"},
	{"stream/view/internal/predicate", []string{"internal/suggest", "stream/view/internal/mistake", "stream/view/internal/path"}, "it evaluates expressions, and reads no values"},
	{"stream/view/internal/randomjson", nil, "texts for tests; a leaf"},
	{"stream/view", []string{"stream", "stream/view/internal/*"}, "a view is defined, and changes are matched with it, without a log"},
	{"stream/history", []string{"stream", "stream/log", "stream/view"}, "it reads a log as a view shows it, whoever asks"},
	{"stream/views", []string{"stream", "stream/memory", "stream/log", "stream/watch", "stream/view"}, "a view is fed by the log of its watch, whoever asks for it"},
	{"access/principal", nil, "who asks; a leaf"},
	{"access/policy", []string{"access/principal", "internal/suggest", "stream", "stream/view"}, "a policy is a view that somebody else has chosen; it knows no request and no watch"},
	{"stream/merge", []string{"stream"}, "a list and a watch are merged before any log sees them"},
	{"stream", nil, "stream is the domain: sources, transports and encodings depend on it, never the other way round"},
	{"stream/streamtest", []string{"stream", "stream/frame", "stream/log", "stream/watch"}, "streamtest proves any Source, so that it must know none"},
	{"stream/streamtest/loopback", nil, "addresses for tests; a leaf"},
	{"stream/streamtest/realserver", []string{"stream/streamtest/loopback"}, "it runs processes, and knows no source"},
	{"stream/streamtest/faultproxy", []string{"stream/streamtest/loopback"}, "it carries bytes, and knows no source"},
	{"stream/streamtest/parts", []string{"stream", "stream/view", "stream/streamtest"}, "it proves views, however they are fed"},
	{"stream/streamtest/faults", []string{"stream", "stream/log", "stream/view", "stream/views", "stream/watch", "stream/streamtest", "stream/streamtest/faultproxy", "stream/streamtest/parts"}, "the harness proves any Source through any fault, so that it must know none"},
	{"stream/streamtest/*", []string{"stream", "stream/log", "stream/watch", "stream/streamtest", "stream/streamtest/*"}, "the test kit knows no source: each brings its own rig"},
	{"stream/histories", nil, "all of it is tests, which make trees of real gateways"},
	{"stream/store", []string{"stream", "stream/log", "stream/memory", "openapi/watchtidev1", "stream/source/grpc"}, "the store is a WatchList server in this process, and is followed like any other; its logs count under the ceiling that watches share"},
	{"stream/source/internal/*", []string{"stream"}, "what several sources share knows no upstream and no source"},
	{"stream/source/view", []string{"stream", "stream/log", "stream/watch", "stream/view", "stream/source/internal/*"}, "a view follows a watch of the same process, so that it is the one source that knows watches"},
	{"stream/source/gateway", []string{"stream", "stream/view", "client", "stream/source/internal/*"}, "a gateway's streams are read by the client, for the command line too; what it narrows them to is a definition"},
	{"client", []string{"internal/pause", "internal/reconnect", "stream"}, "a client knows the wire and the vocabulary of stream, and no log"},
	{"stream/source/etcd", []string{"stream", "stream/merge", "stream/source/internal/*"}, "the list of etcd is read beside its watch; otherwise as below"},
	{"stream/source/consul", []string{"stream", "stream/merge", "stream/source/internal/*"}, "the list of Consul is read beside its watch; otherwise as below"},
	{"stream/source/*", []string{"stream", "openapi/watchtidev1", "stream/source/internal/*"}, "a source knows the domain and its one upstream; neither the gateway nor another source"},
	{"access/principal", nil, "who asks; a leaf that credentials and rules share"},
	{"access/refusal", []string{"access/principal"}, "why a credential is not accepted, whatever kind it is"},
	{"access/seal", nil, "keys and bytes; a leaf"},
	{"access/audit", []string{"access/principal"}, "it writes down decisions, and makes none"},
	{"access/token", []string{"access/principal"}, "a file of tokens, and no requests"},
	{"access/jwt", []string{"access/principal", "access/refusal"}, "tokens of providers, and no requests of clients"},
	{"access/credential", []string{"access/principal", "access/refusal", "access/seal", "access/token", "access/jwt"}, "it finds out who asks, and knows neither rules nor watches"},
	{"access/accesstest", []string{"access/jwt"}, "what tests of access share; those of access/jwt look more closely"},
	{"access/provider", nil, "all of it is tests, which run a provider that others wrote"},
	{"gateway/internal/deflate", nil, "compression knows bytes, and no events"},
	{"openapi", nil, "the contract is a leaf"},
	{"openapi/*", nil, "the contract is a leaf"},
	{"web/manual", nil, "it renders documents, whichever they are; a leaf"},
	{"web", []string{"docs", "internal/accept", "web/manual"}, "the pages know no gateway"},
	{"internal/hosts", nil, "names and addresses; a leaf that the gateway, its configuration and its command share"},
	{"gateway/internal/problem", []string{"internal/suggest", "stream", "stream/log", "stream/watch"}, "every refusal is a problem: all of the gateway is above it"},
	{"gateway/internal/access", []string{"access/audit", "access/credential", "access/policy", "access/refusal", "internal/loglimit", "internal/suggest", "gateway/internal/problem", "stream", "stream/history", "stream/log", "stream/view", "stream/views", "stream/watch"}, "a request gets a watch, whoever asks"},
	{"gateway/internal/admission", []string{"gateway/internal/problem", "stream", "stream/views", "stream/watch"}, "admission counts streams, and carries none"},
	{"gateway/internal/netconn", []string{"gateway/internal/admission", "internal/loglimit"}, "connections know no streams"},
	{"gateway/internal/delivery", []string{"access/credential", "gateway/internal/problem", "gateway/internal/quota"}, "what browsers report, whatever is made of it"},
	{"gateway/internal/budget", []string{"gateway/internal/problem", "gateway/internal/admission"}, "memory is shared out among clients"},
	{"gateway/internal/metrics", []string{"access/audit", "access/principal", "access/refusal", "gateway/internal/deflate", "gateway/internal/admission", "gateway/internal/netconn", "gateway/internal/budget", "stream", "stream/log", "stream/watch", "stream/views"}, "metrics read what is counted below, and are told of the rest"},
	{"gateway/internal/snapshots", []string{"gateway/internal/metrics", "stream/log"}, "the snapshot budget knows how much a reader has before it, and nothing of its connection"},
	{"gateway/internal/wire", []string{"internal/accept", "gateway/internal/problem", "gateway/internal/netconn", "gateway/internal/metrics", "stream", "stream/frame", "stream/log"}, "bytes to one client, whatever they say"},
	{"gateway/internal/replicas", nil, "it asks other gateways, and knows nothing of this one; a leaf"},
	{"gateway/internal/poll", []string{"gateway/internal/netconn", "gateway/internal/wire"}, "file descriptors, and no streams"},
	{"gateway/internal/tracing", nil, "it makes spans, and knows no streams; a leaf"},
	{"gateway/internal/monotime", nil, "times without pointers; a leaf"},
	{"gateway/internal/series", []string{"stream", "stream/watch"}, "figures over time of watches, whoever measures them"},
	{"gateway/internal/subscribers", []string{"access/credential", "internal/loglimit", "gateway/internal/admission", "gateway/internal/monotime", "stream", "stream/log", "stream/view"}, "the list asks what carries streams through an interface"},
	{"gateway/internal/pass", []string{"access/audit", "access/credential", "access/refusal", "gateway/internal/access", "stream"}, "a pass knows who may go on, and carries no stream"},
	{"gateway/internal/topology", []string{"gateway/internal/subscribers", "stream", "stream/views", "stream/watch"}, "it is given what it shows"},
	{"gateway/internal/quota", []string{"access/credential", "gateway/internal/admission"}, "it counts what principals have, and carries nothing"},
	{"gateway/internal/conversation", []string{"gateway/internal/monotime", "gateway/internal/series", "gateway/internal/tracing", "gateway/internal/quota", "gateway/internal/access", "gateway/internal/pass", "internal/accept", "gateway/internal/deflate", "gateway/internal/problem", "gateway/internal/admission", "gateway/internal/metrics", "gateway/internal/snapshots", "gateway/internal/subscribers", "gateway/internal/wire", "stream", "stream/frame", "stream/log", "stream/watch", "stream/views"}, "a stream is given what it needs of its gateway"},
	{"gateway/internal/unary", []string{"gateway/internal/access", "gateway/internal/problem", "gateway/internal/admission", "gateway/internal/budget", "openapi/watchtidev1", "stream", "stream/log", "stream/watch", "stream/views"}, "the service, whichever transport calls it"},
	{"gateway/internal/rest", []string{"gateway/internal/quota", "gateway/internal/pass", "access/audit", "access/credential", "access/refusal", "gateway/internal/access", "gateway/internal/problem", "gateway/internal/admission", "gateway/internal/netconn", "gateway/internal/budget", "gateway/internal/metrics", "gateway/internal/subscribers", "gateway/internal/wire", "gateway/internal/conversation", "gateway/internal/unary", "openapi/watchtidev1", "stream", "stream/frame", "stream/history", "stream/log", "stream/watch", "stream/views"}, "requests over HTTP that are answered as a whole"},
	{"gateway/internal/rpc", []string{"gateway/internal/tracing", "gateway/internal/quota", "gateway/internal/pass", "access/audit", "access/credential", "access/refusal", "gateway/internal/access", "internal/hosts", "gateway/internal/problem", "gateway/internal/admission", "gateway/internal/netconn", "gateway/internal/budget", "gateway/internal/metrics", "gateway/internal/subscribers", "gateway/internal/conversation", "gateway/internal/unary", "openapi/watchtidev1", "stream", "stream/log", "stream/watch"}, "everything over gRPC"},
	{"gateway/internal/shard", []string{"gateway/internal/pass", "gateway/internal/monotime", "gateway/internal/deflate", "gateway/internal/problem", "gateway/internal/admission", "gateway/internal/netconn", "gateway/internal/snapshots", "gateway/internal/subscribers", "gateway/internal/wire", "gateway/internal/poll", "gateway/internal/conversation", "stream", "stream/log", "stream/watch"}, "a pump carries conversations, and says nothing itself"},
	{"gateway/internal/direct", []string{"gateway/internal/pass", "gateway/internal/problem", "gateway/internal/netconn", "gateway/internal/subscribers", "gateway/internal/wire", "gateway/internal/poll", "gateway/internal/conversation", "stream", "stream/log"}, "a pump carries conversations, and says nothing itself"},
	{"gateway/internal/gatewaytest", []string{"gateway/internal/admission", "gateway/internal/netconn", "gateway/internal/metrics", "gateway/internal/snapshots", "gateway/internal/subscribers", "gateway/internal/poll", "gateway/internal/conversation", "stream", "stream/view", "stream/watch", "stream/views"}, "what the tests of the gateway and of its pumps share, so that it knows neither"},
	{"gateway/simulate/internal/crowd", []string{"gateway/internal/admission", "internal/reconnect", "stream/watch"}, "it makes the decisions of gateways and clients, and carries nothing"},
	{"gateway/simulate/internal/*", nil, "figures in, text out; a leaf"},
	{"gateway/simulate", []string{"gateway/simulate/internal/*"}, "it runs a simulation, and knows no gateway"},
	{"gateway", []string{"access/*", "stream", "stream/log", "stream/view", "stream/watch", "openapi", "web", "internal/hosts", "gateway/internal/*", "stream/views"}, "the gateway is handed its sources by cmd/gateway and knows none"},
	{"web/dashboard/browser/upstream", []string{"stream", "stream/store", "openapi/watchtidev1"}, "what the gateway follows in the browser scenarios: a process of its own"},
	{"internal/config/internal/parameter", []string{"stream", "stream/view"}, "texts and values, and no files"},
	{"internal/config/internal/decode", []string{"internal/suggest", "internal/config/internal/keytag", "internal/config/internal/mistake", "internal/config/internal/parameter", "internal/config/internal/tree", "internal/config/internal/word"}, "it reads YAML into structs, whatever they are about"},
	{"internal/config/internal/keytag", []string{"internal/config/internal/word"}, "tags of structs, and no values"},
	{"internal/config/internal/mistake", nil, "errors and their places; a leaf"},
	{"internal/config/internal/tree", nil, "YAML, and nothing of what a configuration means"},
	{"internal/config/internal/word", nil, "texts of one word; a leaf"},
	{"internal/config/auth", []string{"access/credential", "access/jwt", "access/seal", "access/token"}, "a section and its files, and no YAML"},
	{"internal/config", []string{"access/credential", "access/jwt", "access/policy", "internal/config/auth", "stream", "stream/view", "stream/source/*", "gateway", "internal/suggest", "internal/hosts", "internal/config/internal/*"}, "the configuration file declares what every source and the gateway can be told"},
	{"internal/*", nil, "a leaf that several parts share"},
	{"cmd/gateway/internal/secrets", []string{"access/seal", "access/token"}, "it makes secrets, and reads none"},
	{"cmd/gateway/internal/commands", []string{"access/policy", "client", "stream", "stream/*", "stream/source/*", "gateway", "internal/config", "internal/config/auth", "internal/hosts", "internal/loglimit", "internal/suggest", "cmd/gateway/internal/*"}, "only the command line knows everything"},
	{"cmd/gateway/internal/otlp", []string{"internal/config", "internal/loglimit"}, "it exports spans, whatever they are about"},
	{"cmd/gateway/internal/permission", []string{"access/policy", "access/principal", "stream", "stream/view"}, "it explains a policy, and reads no configuration"},
	{"cmd/gateway/internal/diagnosis", []string{"cmd/gateway/internal/connect", "cmd/gateway/internal/doctor"}, "it prints findings, and examines nothing"},
	{"cmd/gateway/internal/doctor", []string{"client", "internal/hosts"}, "it sees a gateway from outside, as a browser does"},
	{"cmd/gateway/internal/terminal", []string{"cmd/gateway/internal/table"}, "text for a terminal, whatever it says"},
	{"cmd/gateway/internal/output", []string{"cmd/gateway/internal/terminal"}, "it prints JSON, and reads none of a gateway"},
	{"cmd/gateway/internal/narrow", []string{"client", "cmd/gateway/internal/terminal", "stream/view"}, "flags that become parameters of requests, and no requests"},
	{"cmd/gateway/internal/contexts", []string{"client", "cmd/gateway/internal/output", "cmd/gateway/internal/table", "cmd/gateway/internal/terminal"}, "a file, and no connections"},
	{"cmd/gateway/internal/connect", []string{"client", "cmd/gateway/internal/bearer", "cmd/gateway/internal/contexts"}, "it finds a gateway, and asks it nothing but names"},
	{"cmd/gateway/internal/resources", []string{"client", "cmd/gateway/internal/connect", "cmd/gateway/internal/narrow", "cmd/gateway/internal/output", "cmd/gateway/internal/table", "cmd/gateway/internal/terminal"}, "commands that are requests to a gateway, and know none"},
	{"cmd/gateway/internal/bearer", []string{"client", "internal/hosts"}, "it finds a token, and sends nothing"},
	{"cmd/gateway/internal/hook", []string{"client", "internal/pause", "cmd/gateway/internal/changes"}, "it is handed changes, and follows nothing"},
	{"cmd/gateway/internal/*", []string{"client"}, "pieces of the command line that know no gateway"},
	{"cmd/gateway", []string{"cmd/gateway/internal/commands"}, "the process: arguments in, exit code out"},
	{"bench/soak", nil, "all of it is tests, which run the built gateway"},
	{"bench", []string{"stream", "stream/*", "gateway"}, "the log and the wake-up of its readers are measured in the bench's own process"},
	{"bench/peers/feed", nil, "it carries bytes to the servers that the bench runs; a leaf"},
	{"bench/peers/*", []string{"bench/peers/feed", "openapi/watchtidev1"}, "a server to compare with knows nothing of the gateway"},
	{"bench/peers", []string{"openapi/watchtidev1", "bench/peers/feed"}, "servers are processes of their own, and not linked in"},
	{"bench/machine", nil, "a sentence for reports; a leaf"},
	{"bench/load", nil, "it speaks HTTP to any server, and knows none"},
	{"bench/load/*", []string{"bench/load", "bench/load/child"}, "the load generator as a process of its own"},
	{"bench/hotpath", []string{"stream", "stream/watch", "gateway", "bench/load"}, "it profiles the gateway in its own process"},
	{"bench/storm", []string{"bench/load", "gateway", "stream", "stream/watch"}, "it starts a gateway of its own, in a process of its own"},
	{"bench/table", []string{"bench/machine"}, "it prints figures, and knows no measurement"},
	{"bench/process", nil, "it runs programs, and knows no measurement"},
	{"bench/access", []string{"bench/load", "bench/load/*", "bench/process", "bench/table"}, "it measures a gateway in a process of its own"},
	{"bench/attacks", []string{"bench/process", "openapi/watchtidev1"}, "it attacks a gateway in a process of its own, with what anybody has"},
	{"bench/views", []string{"bench/load", "bench/load/*", "bench/process", "bench/table", "openapi/watchtidev1"}, "it is the upstream of a gateway in a process of its own"},
	{"bench/*", []string{"bench/load", "bench/load/*", "bench/machine", "bench/peers"}, "it measures from outside, through sockets and /proc"},
	{"client/thirdparty", nil, "all of it is tests, which run the built gateway and clients that others wrote"},
	{"docs", nil, "documentation, embedded; a leaf"},
	{"deploy/envoy", nil, "Envoy's definitions, in a module of their own"},
	{"deploy", nil, "manifests and proxy configurations; only their test is Go"},
	{"examples/sign-in/issuer", nil, "a provider for development, and no gateway"},
	{"examples", nil, "pages, scripts and configurations; only their test is Go"},
	{"stream/streamtest/upstreams/*", nil, "a real server for tests, in a module of its own, that must not know who follows it"},
	{"release", []string{"release/*"}, "it puts together what the parts make, and runs the gateway as a program"},
	{"release/manifests", []string{"release/archive"}, "it packs the chart, and knows no gateway"},
	{"release/source", nil, "it reads Git and compiles; a leaf"},
	{"release/licenses/print", []string{"release/source", "release/licenses"}, "a command of its own, for the Dockerfile"},
	{"release/licenses", []string{"release/source"}, "it asks the go command what is linked in, and knows no archive"},
	{"release/contents", []string{"release/archive", "release/licenses"}, "what is installed, whatever it is packed in"},
	{"release/npm", []string{"release/archive"}, "the package of the client, and not where it is from"},
	{"release/distro", []string{"release/archive", "release/contents", "release/licenses"}, "packages of a program, and not where it is from"},
	{"release/image", []string{"release/archive", "release/licenses"}, "an image of a program, and not where it is from"},
	{"release/bom", nil, "it reads programs; a leaf"},
	{"release/archive", nil, "names and bytes; a leaf"},
	{"tools/*", nil, "the tools make files of the product and never run in it"},
}

// transports must not be reachable from package stream: it would then speak, or
// be shaped by, one way of being served.
var transports = []string{
	"net/http", "google.golang.org/grpc", "google.golang.org/protobuf", "github.com/go-chi/chi/v5",
}

// TestImportDirection: architecture is a matter of what a package cannot see.
func TestImportDirection(t *testing.T) {
	for _, p := range ours(t) {
		may, why, known := rule(p.name())
		if !known {
			t.Errorf("package %s stands in no row of the table in structure_test.go: decide what it may import, and say so in DESIGN.md", p.name())
		}
		for _, imported := range p.Imports {
			if name, own := strings.CutPrefix(imported, module+"/"); own && known && !matches(may, name) {
				t.Errorf("%s imports %s, but may import of this repository only %v: %s", p.name(), name, may, why)
			}
		}
	}
}

// TestBenchSeesNoInternals: the path of the bench's module begins with that of the
// gateway's, so that the go command lets it import internal packages, tests too. It
// measures what users get.
func TestBenchSeesNoInternals(t *testing.T) {
	packages := list(t, "bench", "-tags", strings.Join(slices.Concat(testTags(t), peerTags(t)), ","), "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	for _, p := range packages {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.HasPrefix(imported, module+"/") && strings.Contains(imported+"/", "/internal/") {
				t.Errorf("%s imports %s: want only what anybody can import", p.name(), imported)
			}
		}
	}
	if len(packages) == 0 {
		t.Error("bench has no package")
	}
}

// TestBenchHasTheVersionsOfTheProduct: what a module requires is a minimum, so that a
// bench could measure a gateway that was built from newer libraries than the one that
// ships.
func TestBenchHasTheVersionsOfTheProduct(t *testing.T) {
	shipped := map[string]string{}
	for _, r := range requirements(t, "go.mod") {
		shipped[r.Path] = r.Version
	}
	for _, r := range requirements(t, "bench/go.mod") {
		if want, known := shipped[r.Path]; r.Path != module && (!known || r.Version != want) {
			t.Errorf("bench/go.mod requires %s %s, go.mod %q: want the same version", r.Path, r.Version, want)
		}
	}
}

// requirement is a line of a go.mod.
type requirement struct{ Path, Version string }

func requirements(t *testing.T, file string) []requirement {
	t.Helper()
	raw, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var mod struct{ Require []requirement }
	if err := json.Unmarshal(raw, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) == 0 {
		t.Fatalf("%s requires nothing", file)
	}
	return mod.Require
}

// TestNoImportIsPermittedInVain: a permission that no package uses would let a new edge
// in without a word.
func TestNoImportIsPermittedInVain(t *testing.T) {
	all := ours(t)
	for _, row := range imports {
		if strings.Contains(row.of, "*") {
			continue
		}
		for _, may := range row.may {
			used := slices.ContainsFunc(all, func(p pkg) bool {
				return p.name() == row.of && slices.ContainsFunc(p.Imports, func(imported string) bool {
					name, own := strings.CutPrefix(imported, module+"/")
					return own && matches([]string{may}, name)
				})
			})
			if !used {
				t.Errorf("%s may import %s, and does not: drop it from the table", row.of, may)
			}
		}
	}
}

// TestDesignNamesEveryPackage checks the table of packages in DESIGN.md: it has every
// package of the main module, and none that does not exist.
func TestDesignNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	named := packageTable(string(text))
	if len(named) == 0 {
		t.Fatal("DESIGN.md has no table of packages: want the heading | package | in the section Packages")
	}
	for _, p := range list(t, ".", "-json=ImportPath", "./...") {
		if p.ImportPath != module && !slices.Contains(named, p.name()) {
			t.Errorf("the table in the section Packages of DESIGN.md lacks %s: add a row", p.name())
		}
	}
	all := ours(t)
	for _, name := range named {
		if !slices.ContainsFunc(all, func(p pkg) bool { return p.name() == name }) {
			t.Errorf("the table in the section Packages of DESIGN.md has %s: there is no such package", name)
		}
	}
}

// packageTable returns the packages in the first column of the table in the section
// Packages. The form …/name stands for a sibling of the package before it.
func packageTable(page string) (names []string) {
	_, section, _ := strings.Cut(page, "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, table, _ := strings.Cut(section, "\n| package |")
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		row, ok := strings.CutPrefix(line, "| ")
		if !ok {
			continue
		}
		cell, _, _ := strings.Cut(row, "|")
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			name := m[1]
			if sibling, ok := strings.CutPrefix(name, "…/"); ok && len(names) > 0 {
				name = path.Join(path.Dir(names[len(names)-1]), sibling)
			}
			names = append(names, name)
		}
	}
	return names
}

// TestImageIsBuiltFromAllOfTheCommand: .dockerignore lets in every folder that the
// command is compiled from.
func TestImageIsBuiltFromAllOfTheCommand(t *testing.T) {
	ignore, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list(t, ".", "-deps", "-json=ImportPath", "./cmd/gateway") {
		name, own := strings.CutPrefix(p.ImportPath, module+"/")
		folder, _, _ := strings.Cut(name, "/")
		if own && !slices.Contains(strings.Split(string(ignore), "\n"), "!"+folder) {
			t.Errorf("cmd/gateway is compiled from %s, which .dockerignore keeps out of the image: want the line !%s", name, folder)
		}
	}
}

// TestTestKitStaysInTests: shipped packages do not import the test kit.
func TestTestKitStaysInTests(t *testing.T) {
	isKit := func(name string) bool {
		return strings.HasPrefix(name, "stream/streamtest") || slices.Contains([]string{"access/accesstest", "gateway/internal/gatewaytest", "stream/view/internal/randomjson"}, name)
	}
	for _, p := range ours(t) {
		if isKit(p.name()) {
			continue
		}
		for _, imported := range p.Imports {
			if isKit(strings.TrimPrefix(imported, module+"/")) {
				t.Errorf("%s imports %s outside of its tests: it is for tests only", p.name(), imported)
			}
		}
	}
}

// core lists the vocabulary, the log, and what keeps it in step with a source.
var core = []string{
	"stream", "stream/internal/signal", "stream/internal/sizes", "stream/memory", "stream/merge", "stream/frame", "stream/log", "stream/watch",
	"stream/log/internal/segment", "stream/log/internal/index", "stream/log/internal/version", "stream/log/internal/pin", "stream/log/internal/listing",
	"stream/log/internal/transaction", "stream/log/internal/notify",
	"stream/log/internal/committed", "stream/log/internal/compacted", "stream/log/internal/superseded", "stream/log/internal/tombstone",
	"stream/log/internal/extent", "stream/log/internal/flush", "stream/log/internal/difference",
}

// TestStreamNeedsOnlyTheStandardLibrary, and of it no transport, not even
// indirectly; nor do the log and its watch.
func TestStreamNeedsOnlyTheStandardLibrary(t *testing.T) {
	packages := list(t, ".", "-deps", "-json=ImportPath,Standard,Deps", "./stream", "./stream/memory", "./stream/merge", "./stream/log/...", "./stream/watch")
	standard := map[string]bool{}
	seen := 0
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
	}
	for _, p := range packages {
		if !slices.Contains(core, p.name()) {
			continue
		}
		seen++
		for _, dep := range p.Deps {
			if !standard[dep] && !slices.Contains(core, strings.TrimPrefix(dep, module+"/")) {
				t.Errorf("%s depends on %s: want the standard library alone; put what needs more into a package beside it", p.name(), dep)
			}
			if slices.Contains(transports, dep) {
				t.Errorf("%s depends on %s: want no transport; the gateway speaks, stream does not", p.name(), dep)
			}
		}
	}
	if seen != len(core) {
		t.Fatalf("go list names %d of the packages %v", seen, core)
	}
}

// TestEveryPackageHasOneDoc: exactly one file of a package describes its
// purpose, or file names would decide which sentence a reader sees. Generated
// files do not count: generators write what they like.
func TestEveryPackageHasOneDoc(t *testing.T) {
	docs, names := map[string][]string{}, map[string]string{}
	for _, f := range code(t) {
		dir := path.Dir(f.path)
		names[dir] = f.syntax.Name.Name
		if f.syntax.Doc != nil && !ast.IsGenerated(f.syntax) {
			docs[dir] = append(docs[dir], f.path)
			checkDoc(t, f)
		}
	}
	for dir, name := range names {
		switch n := len(docs[dir]); {
		case n == 0:
			t.Errorf("%s: package %s has no package comment: say in its main file, or in doc.go, what it is for", dir, name)
		case n > 1:
			t.Errorf("%s: package %s has %d package comments, in %v: keep one; a licence or a file comment wants an empty line before the package clause", dir, name, n, docs[dir])
		}
	}
}

// checkDoc requires the sentence that go doc shows in lists.
func checkDoc(t *testing.T, f file) {
	t.Helper()
	want := "Package " + f.syntax.Name.Name + " "
	if f.syntax.Name.Name == "main" {
		want = "Command " + path.Base(path.Dir(f.path)) + " "
	}
	if doc := f.syntax.Doc.Text(); !strings.HasPrefix(doc, want) {
		first, _, _ := strings.Cut(doc, "\n")
		t.Errorf("%s: the package comment begins with %q: want %q", f.path, first, want+"…")
	}
}

// TestExportedNamesAreDocumented: what a package offers is explained where it is
// declared. Methods of types that are not exported are not offered.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range code(t) {
		if ast.IsGenerated(f.syntax) {
			continue
		}
		for _, d := range f.syntax.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment", f.at(d), name)
			}
		}
	}
}

// undocumented returns the exported names of a declaration that has no comment.
func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && spec.Doc == nil && spec.Name.IsExported() {
					names = append(names, spec.Name.Name)
				}
			case *ast.ValueSpec:
				if d.Doc == nil && spec.Doc == nil && spec.Comment == nil && spec.Names[0].IsExported() {
					names = append(names, spec.Names[0].Name)
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestPackageNamesSaySomething: a meaningless name attracts whatever has no home.
func TestPackageNamesSaySomething(t *testing.T) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "types", "models", "pkg", "misc", "shared", "base"}
	for _, f := range code(t) {
		for _, name := range append(strings.Split(path.Dir(f.path), "/"), f.syntax.Name.Name) {
			if slices.Contains(empty, name) {
				t.Errorf("%s: a package or folder named %q: name it after what it does", f.path, name)
			}
		}
	}
}

// TestOnlyIngestStartsGoroutines: that each log has one writer can only be promised if all
// goroutines are known. DESIGN.md names the places that start them.
func TestOnlyIngestStartsGoroutines(t *testing.T) {
	allowed := []string{
		"stream/watch/ingest.go",
		"stream/log/internal/pin/pace.go", // a timer, which takes versions away from slow readers and writes nothing
	}
	for _, f := range code(t) {
		if !slices.Contains(core, path.Dir(f.path)) || slices.Contains(allowed, f.path) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if what := startsGoroutine(n); what != "" {
				t.Errorf("%s: %s starts a goroutine: in the core only %v may; the caller's goroutine does the work", f.at(n), what, allowed)
			}
			return true
		})
	}
}

// TestOnlyIngestWritesLogs: a log.Log cannot be written, since only Writer has the methods
// for that, and NewWriter never returns the writer of an existing log. So it is enough
// that no other package mentions them.
func TestOnlyIngestWritesLogs(t *testing.T) {
	allowed := []string{"stream/log", "stream/watch", "stream/store", "bench"}
	for _, f := range code(t) {
		if n := writesLogs(f.syntax); n != nil && !slices.Contains(allowed, path.Dir(f.path)) {
			t.Errorf("%s: only %v may write a log: read it as a log.Log", f.at(n), allowed)
		}
	}
}

// writesLogs returns where a file mentions the Writer of a log; nil if it does not.
func writesLogs(f *ast.File) (found ast.Node) {
	name := importName(f, module+"/stream/log")
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && name != "" && isIdent(s.X, name) && strings.Contains(s.Sel.Name, "Writer") {
			found = n
		}
		return found == nil
	})
	return found
}

// waysToWatches are the functions of the gateway that may reach watches without a policy, and
// why; "*" stands for all of a package.
var waysToWatches = map[string]string{
	"gateway/internal/access *":      "it applies the policy",
	"gateway/internal/metrics *":     "it counts, for operators",
	"gateway/internal/gatewaytest *": "it is for tests",
	"gateway/internal/series *":      "it records figures, for operators",
	"gateway New":                    "hands it to the parts above",
	"gateway access":                 "hands it to the parts above",
	"gateway authenticate":           "hands it to Revoked",
	"gateway check":                  "only whether there is one",
	"gateway Reload":                 "hands it to the next settings",
	"gateway Config":                 "is given it",
	"gateway Gateway":                "keeps it",
	"gateway revocations":            "keeps it for Revoked",
	"gateway followRevocations":      "follows what is revoked, for nobody",
	"gateway Revoked":                "reads what is revoked, for nobody",
	"gateway instanceWatches":        "names watches for operators only",
	"gateway memoryOfWatches":        "counts, for operators only",
	"gateway readiness":              "names watches for operators only",
	"gateway checkEntry":             "names watches for operators only",
	"gateway newTopology":            "shows watches to operators only",
	"gateway upstreamsOf":            "lists watches for operators only",
	"gateway awaitPrimed":            "waits for them at start, for nobody",
}

// TestOneWayToWatches: what a request may see is decided in one place, so that no handler
// forgets it. Only gateway/internal/access finds watches for requests.
func TestOneWayToWatches(t *testing.T) {
	used := map[string]bool{}
	for _, f := range code(t) {
		dir := path.Dir(f.path)
		if dir != "gateway" && !strings.HasPrefix(dir, "gateway/") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			for _, n := range reachesWatches(f.syntax, decl) {
				whole, one := dir+" *", dir+" "+nameOf(decl)
				used[whole], used[one] = true, true
				if waysToWatches[whole] == "" && waysToWatches[one] == "" {
					t.Errorf("%s: in %s: a request gets watches from access.Lookup only, which knows what it may see", f.at(n), one)
				}
			}
		}
	}
	for way := range waysToWatches {
		if !used[way] {
			t.Errorf("%s reaches no watches any more: remove it from the list", way)
		}
	}
}

// reachesWatches returns where a declaration uses what leads to watches past a policy: a
// registry, a list of watches, a template, the watch that a view is of, or the lookup for
// operators.
func reachesWatches(f *ast.File, decl ast.Decl) (found []ast.Node) {
	registry := importName(f, module+"/stream/watch")
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			ofPackage := registry != "" && isIdent(n.X, registry)
			field := n.Sel.Name == "registry" || n.Sel.Name == "Registry" && !isIdent(n.X, "prometheus")
			if field || ofPackage && n.Sel.Name == "NewRegistry" {
				found = append(found, n)
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			lists := len(n.Args) == 0 && slices.Contains([]string{"Of", "Watches", "Templates"}, s.Sel.Name)
			if lists || s.Sel.Name == "Known" && len(n.Args) == 1 {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// nameOf returns the name of a function, a method or a type; "" for any other declaration.
func nameOf(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		if one, ok := d.Specs[0].(*ast.TypeSpec); ok && len(d.Specs) == 1 {
			return one.Name.Name
		}
	}
	return ""
}

// importName returns the name by which a file refers to an imported package; "" if it
// does not import it.
func importName(f *ast.File, of string) string {
	for _, i := range f.Imports {
		if i.Path.Value != strconv.Quote(of) {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path.Base(of)
	}
	return ""
}

// startsGoroutine returns how n starts a goroutine, or "": the statement, or a
// method of that effect (sync.WaitGroup.Go, errgroup.Group.Go, AfterFunc of time
// and context).
func startsGoroutine(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go"
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc") {
			return s.Sel.Name
		}
	}
	return ""
}

// TestNobodySleeps: a sleeping goroutine can neither be cancelled nor woken.
// (Tests may sleep, inside testing/synctest, where it costs nothing.)
func TestNobodySleeps(t *testing.T) {
	for _, f := range code(t) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && isIdent(s.X, "time") && s.Sel.Name == "Sleep" {
				t.Errorf("%s: time.Sleep: wait in a select for a timer and for the context", f.at(n))
			}
			return true
		})
	}
}

func isIdent(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

// serverTag is the build tag of tests that start real servers: make test leaves
// them out, so that it needs this repository alone.
const serverTag = "servers"

// TestTestsWithServersCarryTheirTag: a test file that uses realserver for more than
// the end of TestMain, without the tag, would have make test compile a server. Every
// other tag needs a target too: make test-all would not run what carries it.
func TestTestsWithServersCarryTheirTag(t *testing.T) {
	tagged, peers := 0, peerTags(t)
	known := slices.Concat(testTags(t), peers, []string{"linux", "unix", "race"})
	walk(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") || path.Dir(name) == "stream/streamtest/realserver" {
			return
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		tags := buildTags(t, syntax)
		if slices.Contains(tags, serverTag) {
			tagged++
		} else if call := startsServers(syntax); call != "" {
			t.Errorf("%s: realserver.%s: begin the file with //go:build %s", name, call, serverTag)
		}
		for _, tag := range tags {
			if slices.Contains(peers, tag) && !strings.HasPrefix(name, "bench/") {
				t.Errorf("%s: build tag %q: test-all leaves it out, so only tests of other people's servers in bench may have it", name, tag)
			} else if !slices.Contains(known, tag) {
				t.Errorf("%s: build tag %q: name it in TAGS of the Makefile, and run it in test-all", name, tag)
			}
		}
	})
	if tagged == 0 {
		t.Error("no test file carries the tag")
	}
}

// TestAllTagsAreTested: each tag of the Makefile has a target of its own, and lint
// looks at what carries it. test-all runs the tests with each tag but those of PEERS:
// they test other people's servers, and CI does not install those.
func TestAllTagsAreTested(t *testing.T) {
	for _, tag := range slices.Concat(testTags(t), peerTags(t)) {
		inMakefile(t, `^test-`+tag+`:.*(?:\n\t.*)*?\n\t@(?:cd bench && )?\$\(GO_TEST\) -tags `+tag+` ()`)
	}
	inMakefile(t, `^test-all: .*\n\t@.* test-modules LENGTH= TAGGED='-tags \$\(TAGS\)'()$`)
	inMakefile(t, `for tags in "" \$\(TAGS\) [^;]*\$\(PEERS\)([^;]*); do .*go vet`)
}

// testTags returns the build tags of tests that the Makefile names, peerTags those that
// test-all leaves out.
func testTags(t *testing.T) []string {
	t.Helper()
	return strings.Fields(inMakefile(t, `^TAGS  := (.+)`))
}

func peerTags(t *testing.T) []string {
	t.Helper()
	return strings.Fields(inMakefile(t, `^PEERS := (.+)`))
}

// inMakefile returns the first group of the only match.
func inMakefile(t *testing.T, pattern string) string {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?m)"+pattern).FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("%d lines of the Makefile match %q, want one", len(found), pattern)
	}
	return found[0][1]
}

// startsServers returns a function of realserver that the file uses, other than
// Main, or "".
func startsServers(f *ast.File) (call string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isIdent(s.X, "realserver") && s.Sel.Name != "Main" {
			call = s.Sel.Name
		}
		return true
	})
	return call
}

// buildTags returns the tags that a file must be built with.
func buildTags(t *testing.T, f *ast.File) (tags []string) {
	t.Helper()
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				t.Fatal(err)
			}
			expr.Eval(func(tag string) bool { tags = append(tags, tag); return true })
		}
	}
	return tags
}

// TestTheseTestsCanFail shows each matcher something that it must catch, so that
// a slip in this file does not make all of the above pass forever.
func TestTheseTestsCanFail(t *testing.T) {
	for _, c := range []struct {
		of, imported string
		ok           bool
	}{
		{"stream", "openapi/watchtidev1", false},
		{"stream/streamtest", "stream", true},
		{"stream/streamtest", "stream/store", false},
		{"stream/streamtest/faults", "stream/streamtest", true},
		{"stream/streamtest/faults", "stream/store", false},
		{"stream/store", "stream", true},
		{"stream/store", "gateway", false},
		{"stream/source/grpc", "stream/store", false},
		{"gateway", "web", true},
		{"gateway", "stream/store", false},
		{"web", "openapi", false},
		{"cmd/gateway/internal/commands", "stream/store", true},
	} {
		if may, _, known := rule(c.of); !known || matches(may, c.imported) != c.ok {
			t.Errorf("%s may import %s: want %t", c.of, c.imported, c.ok)
		}
	}
	for source, want := range map[string]string{
		"//go:build servers\n\npackage x\nvar _ = realserver.Start": "Start",
		"package x\nvar _ = realserver.Main":                        "",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := startsServers(f); got != want || slices.Contains(buildTags(t, f), serverTag) != (want != "") {
			t.Errorf("%s\nstarts servers with %q, tags %q", source, got, buildTags(t, f))
		}
	}
	for source, want := range map[string]bool{
		"package x\nimport \"" + module + "/stream/log\"\nvar _ = log.NewWriter":      true,
		"package x\nimport old \"" + module + "/stream/log\"\ntype _ = *old.Writer":   true,
		"package x\nimport \"" + module + "/stream/log\"\ntype _ = *log.Log":          false,
		"package x\nimport \"example.com/other/log\"\nvar _ = log.NewWriter(nothing)": false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := writesLogs(f) != nil; got != want {
			t.Errorf("%s\nwrites a log: %t, want %t", source, got, want)
		}
	}
	for source, want := range map[string]bool{
		"g.registry.Watches()": true, "w, _ := s.Registry.Watch(name)": true, "all := g.registry": true, "w.Of()": true, "w.Template().Watches()": true,
		"r := watch.NewRegistry()": true, "f := func(r *watch.Registry) {}": true, "type t struct { r *watch.Registry }": true, "l.Known(name)": true,
		"l.Find(ctx, name)": false, "p.Open(r)": false, "problem.Of(err)": false, "prometheus.Registry()": false,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport \""+module+"/stream/watch\"\nfunc f() { "+source+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(reachesWatches(f, f.Decls[1])) > 0; got != want || nameOf(f.Decls[1]) != "f" {
			t.Errorf("%s reaches watches: %t, want %t", source, got, want)
		}
	}
	page := "# Page\n\n## Packages\n\n| package | its one job |\n|---|---|\n| `a/b`, `…/c` | see `a/x` |\n| `d` | … |\n\n## Next\n\n| `e` | |\n"
	if got, want := packageTable(page), []string{"a/b", "a/c", "d"}; !slices.Equal(got, want) {
		t.Errorf("the table of packages has %q, want %q", got, want)
	}
	for _, statement := range []string{"go f()", "wg.Go(f)", "time.AfterFunc(d, f)"} {
		if !slices.ContainsFunc(nodes(t, statement), func(n ast.Node) bool { return startsGoroutine(n) != "" }) {
			t.Errorf("%q is not seen to start a goroutine", statement)
		}
	}
}

func nodes(t *testing.T, statement string) (out []ast.Node) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc _() { "+statement+" }", 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool { out = append(out, n); return true })
	return out
}

func rule(name string) (may []string, why string, known bool) {
	for _, r := range imports {
		if matches([]string{r.of}, name) {
			return r.may, r.why, true
		}
	}
	return nil, "", false
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath                string
	Standard                  bool
	Imports                   []string
	TestImports, XTestImports []string
	Deps                      []string
}

// name is the import path without the module.
func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// listed and parsed are what ours and code found, for the tests that follow.
var (
	listed []pkg
	parsed []file
)

// ours returns the packages of all modules of the repository that have code.
func ours(t *testing.T) (out []pkg) {
	t.Helper()
	if listed != nil {
		return listed
	}
	defer func() { listed = out }()
	for _, dir := range modules(t) {
		for _, p := range list(t, dir, "-json=ImportPath,Imports", "./...") {
			if strings.HasPrefix(p.ImportPath, module+"/") && !slices.ContainsFunc(out, func(q pkg) bool { return q.ImportPath == p.ImportPath }) {
				out = append(out, p)
			}
		}
	}
	return out
}

// list runs go list; with -deps, dependencies come before their importers.
func list(t *testing.T, dir string, arguments ...string) (out []pkg) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, arguments...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("in %s: %v: %v\n%s", dir, cmd.Args, err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("in %s: %v: %v", dir, cmd.Args, err)
		}
		out = append(out, p)
	}
}

func modules(t *testing.T) (dirs []string) {
	t.Helper()
	walk(t, func(name string) {
		if path.Base(name) == "go.mod" {
			dirs = append(dirs, path.Dir(name))
		}
	})
	return dirs
}

// file is one Go file that is not a test.
type file struct {
	path   string // with slashes, relative to the repository
	syntax *ast.File
	set    *token.FileSet
}

func (f file) at(n ast.Node) string { return f.set.Position(n.Pos()).String() }

// code parses every Go file of the repository that is not a test.
func code(t *testing.T) (out []file) {
	t.Helper()
	if parsed != nil {
		return parsed
	}
	defer func() { parsed = out }()
	set := token.NewFileSet()
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return
		}
		syntax, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		out = append(out, file{path: name, syntax: syntax, set: set})
	})
	return out
}

func walk(t *testing.T, visit func(name string)) {
	t.Helper()
	skip := []string{".git", "node_modules", "testdata", "bin", "profile"}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case !d.IsDir():
			visit(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
