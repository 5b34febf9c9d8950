//go:build servers

package thirdparty

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// patience is how long a test waits for what must happen. Only failing tests wait that
// long.
const patience = 30 * time.Second

// build builds the program as it is shipped.
func build(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gateway")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", path, "./cmd/gateway")
	cmd.Dir = "../.." // the module of the command
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return path
}

// process is a gateway as a process of its own.
type process struct {
	*realserver.Server
	address string // host:port
}

// start starts the program and waits until it is ready. source is the configuration of
// the only source.
func start(t *testing.T, program, source string) *process {
	t.Helper()
	p := &process{address: realserver.FreeAddress(t)}
	text := fmt.Sprintf(`
http: { listen: %q }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
stream: { retry: 100ms }
sources: { upstream: %s }
watches: { orders: { source: upstream } }
`, p.address, source)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Server = realserver.Command{Path: program, Args: []string{"serve", "--config", file}, Address: p.address}.Start(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if status := p.request(t, http.MethodGet, "/readyz", nil); status == http.StatusOK {
			return p
		} else if time.Now().After(deadline) {
			t.Fatalf("the gateway is not ready: %d", status)
		}
	}
}

// startReplica starts a gateway that follows another one.
func startReplica(t *testing.T, program string, of *process) *process {
	t.Helper()
	return start(t, program, fmt.Sprintf(`{ type: gateway, url: "http://%s" }`, of.address))
}

func (p *process) put(t *testing.T, key string, value map[string]any) {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, http.MethodPut, key, body)
}

func (p *process) delete(t *testing.T, key string) {
	t.Helper()
	p.write(t, http.MethodDelete, key, nil)
}

func (p *process) write(t *testing.T, method, key string, body []byte) {
	t.Helper()
	if status := p.request(t, method, "/v1/watches/orders/resources/"+key, body); status/100 != 2 {
		t.Fatalf("%s %s: %d", method, key, status)
	}
}

// client keeps no connection, so that none outlives the test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func (p *process) request(t *testing.T, method, path string, body []byte) (status int) {
	t.Helper()
	request, err := http.NewRequest(method, "http://"+p.address+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
