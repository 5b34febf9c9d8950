//go:build servers

package examples_test

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// TestConsulServices feeds the watch of the wall screen from a real Consul. The browser scenario
// examples.mjs shows the page.
func TestConsulServices(t *testing.T) {
	if os.Getenv("WATCHTIDE_FULL_CONSUL") == "" {
		t.Skip("WATCHTIDE_FULL_CONSUL is not set: the example consul-wall is not tested with Consul")
	}
	needs(t, "node")
	consul := startConsul(t)
	e := copied(t, "consul-wall")
	e.serve()
	e.write("PUT", "services", "gone", `{"state":"passing"}`) // left by an earlier feed
	consul.register(t, "web", "web-1")
	consul.register(t, "web", "web-2")

	feed := e.command("node", "feed.mjs")
	feed.Env = append(feed.Env, "CONSUL_HTTP_ADDR=http://"+string(consul), "CONSUL_HTTP_TOKEN=")
	feed.Stderr = t.Output()
	if err := feed.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		feed.Process.Kill()
		feed.Wait()
	})
	lines := e.follow("services")
	await(t, lines, `"key":"web","revision":"2","value":{"state":"passing","passing":2,"instances":2,"output":""}`)
	await(t, lines, `{"type":"delete","watch":"services","key":"gone"`)
	consul.call(t, "/v1/agent/check/update/service:web-2", `{"Status":"critical","Output":"connection refused"}`)
	await(t, lines, `"value":{"state":"warning","passing":1,"instances":2,"output":"connection refused"}`)
	consul.call(t, "/v1/agent/service/deregister/web-1", "")
	consul.call(t, "/v1/agent/service/deregister/web-2", "")
	await(t, lines, `{"type":"delete","watch":"services","key":"web"`)
}

// consulAgent is the address of a Consul agent's HTTP interface.
type consulAgent string

func startConsul(t *testing.T) consulAgent {
	t.Helper()
	address := realserver.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	realserver.Command{Path: realserver.Build(t, "consul"), Address: address, Args: []string{
		"agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-http-port=" + port, "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1",
		fmt.Sprint("-server-port=", realserver.FreePort(t)), fmt.Sprint("-serf-lan-port=", realserver.FreePort(t)), "-serf-wan-port=-1",
		"-log-level=warn", "-hcl=disable_update_check=true"}}.Start(t)
	c := consulAgent(address)
	for deadline := time.Now().Add(patience); !c.hasLeader(); {
		if time.Now().After(deadline) {
			t.Fatal("Consul has no leader")
		}
	}
	return c
}

func (c consulAgent) hasLeader() bool {
	answer, err := client.Get("http://" + string(c) + "/v1/status/leader")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, _ := bufio.NewReader(answer.Body).ReadString('\n')
	return answer.StatusCode == http.StatusOK && strings.Contains(text, ":")
}

// register registers an instance of a service, which passes its one check.
func (c consulAgent) register(t *testing.T, service, id string) {
	t.Helper()
	c.call(t, "/v1/agent/service/register", fmt.Sprintf(`{"Name":%q,"ID":%q,"Check":{"TTL":"1h","Status":"passing"}}`, service, id))
}

func (c consulAgent) call(t *testing.T, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+string(c)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("PUT %s: %s", path, answer.Status)
	}
}
