//go:build servers

package consul

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// fullVersions are the whole Consul servers available: module → version.
var fullVersions = map[string]string{"consul": "1.22.3", "consul119": "1.19.2"}

// consul is a whole Consul server.
type consul struct {
	*realserver.Server
	*artists
	t    *testing.T
	http string
	root string // the token that may do everything, if ACLs are on
}

// eachConsul runs a test with every version, in memory (-dev) or with its data on
// disk (-server). They take minutes to compile and seconds to start, so they run
// only on request. With "today" the versions take turns, a day each.
func eachConsul(t *testing.T, mode, hcl string, test func(t *testing.T, c *consul)) {
	eachVersion(t, func(t *testing.T, module string) { test(t, startConsul(t, module, mode, hcl)) })
}

// eachVersion runs a test with each version that is due.
func eachVersion(t *testing.T, test func(t *testing.T, module string)) {
	t.Helper()
	if os.Getenv("WATCHTIDE_FULL_CONSUL") == "" {
		t.Skip("WATCHTIDE_FULL_CONSUL is not set")
	}
	for module, version := range fullVersions {
		t.Run(version, func(t *testing.T) {
			if newest := module == "consul"; os.Getenv("WATCHTIDE_FULL_CONSUL") == "today" && newest != (time.Now().UTC().YearDay()%2 == 0) {
				t.Skip("it is due on another day: see WATCHTIDE_FULL_CONSUL=1")
			}
			test(t, module)
		})
	}
}

const rootToken = "7f6cf6a0-46ab-4d9b-8e0b-2f7c9a6a2a11"

// aclsOn is a configuration in which everything requires a token.
const aclsOn = `acl { enabled = true, default_policy = "deny", tokens { initial_management = "` + rootToken + `" } }`

func startConsul(t *testing.T, module, mode, hcl string) *consul {
	t.Helper()
	grpc, http := realserver.FreePort(t), realserver.FreePort(t)
	args := []string{"agent", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=test", "-datacenter=dc1",
		fmt.Sprint("-http-port=", http), fmt.Sprint("-grpc-port=", grpc), "-grpc-tls-port=-1", "-dns-port=-1",
		fmt.Sprint("-server-port=", realserver.FreePort(t)), fmt.Sprint("-serf-lan-port=", realserver.FreePort(t)),
		"-serf-wan-port=-1", "-log-level=warn", "-hcl=disable_update_check=true", "-hcl=" + hcl}
	switch mode {
	case "-dev":
		args = append(args, "-dev")
	case "-server":
		args = append(args, "-server", "-bootstrap-expect=1", "-data-dir="+t.TempDir(),
			"-hcl=performance { raft_multiplier = 1 }")
	}
	address := fmt.Sprintf("127.0.0.1:%d", grpc)
	c := &consul{t: t, http: fmt.Sprintf("http://127.0.0.1:%d", http)}
	if hcl == aclsOn {
		c.root = rootToken
	}
	c.Server = realserver.Command{Path: realserver.Build(t, module), Args: args, Address: address}.Start(t)
	c.artists = artistsAt(t, address)
	c.artists.token = c.root
	c.elect()
	return c
}

// elect waits until there is a leader.
func (c *consul) elect() {
	c.t.Helper()
	c.eventually("a leader", func() error {
		_, err := c.list(c.t.Context(), "")
		return err
	})
}

// eventually waits until nothing is missing.
func (c *consul) eventually(what string, missing func() error) {
	c.t.Helper()
	eventually(c.t, what, missing)
}

// again restarts the server with its data on disk.
func (c *consul) again() {
	c.t.Helper()
	if err := c.Restart(); err != nil {
		c.t.Fatal(err)
	}
}

// fill writes n resources; name gives the name of each.
func (c *consul) fill(n int, name func(i int) string) {
	c.t.Helper()
	var all sync.WaitGroup
	const workers = 16
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				if _, err := c.put(c.t.Context(), name(i), `"`+name(i)+`"`); err != nil {
					c.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// call makes a request of Consul's HTTP interface.
func (c *consul) call(method, path string, body []byte) []byte {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.http+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("X-Consul-Token", c.root)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, out)
	}
	return out
}

// callJSON is call with JSON in both directions; it returns one field of the
// answer.
func (c *consul) callJSON(method, path string, body map[string]any, field string) string {
	c.t.Helper()
	in, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(c.call(method, path, in), &out); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprint(out[field])
}
