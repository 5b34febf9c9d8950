package watchtide_test

import (
	"path"
	"strings"
	"testing"
)

// public are the packages that other programs can import, each for a reason.
var public = map[string]string{
	"stream":              "the vocabulary of sources",
	"stream/watch":        "watches, in any program",
	"stream/store":        "a source that programs write to",
	"stream/sourcetest":   "the conformance suite for sources",
	"gateway":             "a gateway, in any server",
	"access":              "principals, rules and the audit log of gateway.Access",
	"access/credential":   "the credentials of gateway.Access",
	"client":              "the client",
	"informer":            "a source for informers of client-go, in a module of its own",
	"openapi/watchtidev1": "the contracts of the gRPC and the HTTP API",
	"docs":                "the manual, which Go embeds where it lies",
}

// TestClientIsSmall: a program that imports the client compiles these modules, and nothing of this one.
func TestClientIsSmall(t *testing.T) {
	may := []string{module + "/client/...", "github.com/r3labs/sse/v2/...", "gopkg.in/cenkalti/backoff.v1", "golang.org/x/net/..."}
	for _, p := range packages(t, "client", "-deps", "./...") {
		if first, _, _ := strings.Cut(p.ImportPath, "/"); strings.Contains(first, ".") && !covered(may, p.ImportPath) {
			t.Errorf("the client depends on %s: want the standard library and %v alone", p.ImportPath, may)
		}
	}
}

// TestPublicPackages: everything else is internal, or a command.
func TestPublicPackages(t *testing.T) {
	for _, f := range code(t) {
		dir := path.Dir(f.path)
		if _, ok := public[dir]; !ok && f.syntax.Name.Name != "main" && !strings.Contains("/"+dir+"/", "/internal/") {
			t.Errorf("%s: package %s can be imported by other programs: make it internal", f.path, f.syntax.Name.Name)
		}
	}
}
