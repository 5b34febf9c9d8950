//go:build servers

package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

const (
	heartbeat = 5 * time.Second
	// patience is how long an immediate operation may take. Only failures reach
	// it.
	patience = time.Minute
)

// configuration has short times, so that all of them are reached often, and short
// histories, so that they are full when the memory of the process is measured.
const configuration = `
http: { listen: "%[1]s" }
grpc: { listen: "%[6]s" }
operations: { listen: "127.0.0.1:0" }
stream:
  heartbeat: %[2]s
  write_timeout: 15s
  snapshot_budget: 16MiB
  max_subscribers: 50000
  max_subscribers_per_client: 50000
  max_subscribers_per_watch: 50000
  retry: 1s
  max_age: 2m
  drain: 2s
  history: { max_age: 30s }
sources:
  backend: { type: grpc, address: "%[3]s", stall_after: 3s }
  keys: { type: etcd, endpoints: ["http://%[4]s"], stall_after: 2s }
  local: { type: store }
watches:
  services: { source: backend }
  settings: { source: keys, prefix: "%[5]s" }
  notes: { source: local }
`

// gateway is the built program, which serves both watches, and a third one that is
// attacked.
type gateway struct {
	*realserver.Server
	http, grpc string // host:port
}

// build builds the program as it is shipped, and without the race detector.
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

// startGateway starts the program and waits until both watches are primed.
func startGateway(t *testing.T, services, settings string) *gateway {
	t.Helper()
	g := &gateway{http: realserver.FreeAddress(t), grpc: realserver.FreeAddress(t)}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := fmt.Sprintf(configuration, g.http, heartbeat, services, settings, etcdPrefix, g.grpc)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.Server = realserver.Command{Path: build(t), Args: []string{"serve", "--config", file}, Address: g.http}.Start(t)
	g.awaitReady(t)
	return g
}

// stop asks the program to end, which it must do without logging an error.
func (g *gateway) stop() error {
	if err := g.Stop(); err != nil {
		return err
	}
	for line := range strings.Lines(g.Output()) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.HasPrefix(line, "panic:") {
			return fmt.Errorf("the gateway logged: %s", line)
		}
	}
	return nil
}

func (g *gateway) awaitReady(t *testing.T) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); ; <-ticker.C {
		if status, err := g.get("/readyz", func(io.Reader) error { return nil }); err == nil && status == http.StatusOK {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("the gateway is not ready: %d, %v", status, err)
		}
	}
}

// client keeps no connection: descriptors are counted.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

func (g *gateway) get(path string, read func(io.Reader) error) (status int, err error) {
	response, err := client.Get("http://" + g.http + path)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, read(response.Body)
}

// condition is the gateway's report on a watch.
type condition struct {
	State, Epoch, Reason string
	Revision             uint64 `json:",string"`
}

func (g *gateway) condition(watch string) (c condition, err error) {
	_, err = g.get("/v1/watches/"+watch, func(body io.Reader) error { return json.NewDecoder(body).Decode(&c) })
	return c, err
}

// metrics are those of the gateway: name with labels → value.
type metrics map[string]float64

func (g *gateway) metrics() (m metrics, err error) {
	m = metrics{}
	_, err = g.get("/metrics", func(body io.Reader) error {
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			if name, value, ok := strings.Cut(lines.Text(), " "); ok && name != "#" {
				m[name], _ = strconv.ParseFloat(value, 64)
			}
		}
		return lines.Err()
	})
	return m, err
}

// sum adds up a metric over the labels that are not given.
func (m metrics) sum(name string, labels ...string) (n float64) {
	for key, value := range m {
		if base, _, _ := strings.Cut(key, "{"); base == name && containsAll(key, labels) {
			n += value
		}
	}
	return n
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// by splits a metric by one label.
func (m metrics) by(name, label string) map[string]float64 {
	out := map[string]float64{}
	for key, value := range m {
		base, labels, _ := strings.Cut(key, "{")
		_, rest, ok := strings.Cut(labels, label+`="`)
		if base == name && ok {
			found, _, _ := strings.Cut(rest, `"`)
			out[found] += value
		}
	}
	return out
}
