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

// TestConsulServices follows the services of a real Consul, as the wall screen does. The browser scenario
// examples.mjs shows the page.
func TestConsulServices(t *testing.T) {
	if os.Getenv("WATCHTIDE_FULL_CONSUL") == "" {
		t.Skip("WATCHTIDE_FULL_CONSUL is not set: the example consul-wall is not tested with Consul")
	}
	consul := startConsul(t)
	e := copied(t, "consul-wall")
	e.replace("watchtide.yaml", "127.0.0.1:8500", string(consul))
	e.serve()
	consul.register(t, "web", "web-1")
	lines := e.follow("services")
	await(t, lines, `"key":"web/test/web-1"`)
	consul.call(t, "/v1/agent/check/update/service:web-1", `{"Status":"critical","Output":"connection refused"}`)
	_, line := await(t, lines, `"status":"critical"`)
	if !strings.Contains(line, `"service":"web","node":"test","id":"web-1"`) || !strings.Contains(line, `"output":"connection refused"`) {
		t.Errorf("got %s", line)
	}
	consul.call(t, "/v1/agent/service/deregister/web-1", "")
	await(t, lines, `{"type":"delete","watch":"services","key":"web/test/web-1"`)
}

// consulAgent is the address of a Consul agent's HTTP interface.
type consulAgent string

func startConsul(t *testing.T) consulAgent {
	t.Helper()
	address := realserver.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	realserver.Command{Path: realserver.Build(t, "consul"), Address: address, Args: []string{
		"agent", "-dev", "-node=test", "-bind=127.0.0.1", "-client=127.0.0.1", "-http-port=" + port, "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1",
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
