//go:build servers

package consul

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// agents are three servers, and an agent in front of them.
type agents struct {
	servers map[string]*realserver.Server // by the address that they have as a leader
	agent   *consul
}

func startAgents(t *testing.T, module string) *agents {
	t.Helper()
	a := &agents{servers: map[string]*realserver.Server{}}
	var joined []string
	start := func(name string, more ...string) (c *consul, leader string) {
		http, serf, server := realserver.FreePort(t), realserver.FreePort(t), realserver.FreePort(t)
		args := append([]string{"agent", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=" + name, "-data-dir=" + t.TempDir(),
			fmt.Sprint("-http-port=", http), "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1", fmt.Sprint("-server-port=", server),
			fmt.Sprint("-serf-lan-port=", serf), "-log-level=warn", "-hcl=disable_update_check=true", "-hcl=performance { raft_multiplier = 1 }"}, more...)
		address := fmt.Sprintf("127.0.0.1:%d", http)
		c = &consul{t: t, http: "http://" + address}
		c.Server = realserver.Command{Path: realserver.Build(t, module), Args: append(args, joined...), Address: address}.Start(t)
		joined = append(joined, fmt.Sprintf("-retry-join=127.0.0.1:%d", serf))
		return c, fmt.Sprintf("127.0.0.1:%d", server)
	}
	for i := range 3 {
		c, leader := start(fmt.Sprint("server-", i), "-server", "-bootstrap-expect=3", "-serf-wan-port=-1")
		a.servers[leader] = c.Server
	}
	a.agent, _ = start("agent")
	a.agent.eventually("a leader", func() error { return a.agent.putKey(t.Context(), "ready", "1") })
	return a
}

// TestAgentAndLossOfTheLeader: an agent in front of servers serves both collections, and when the leader
// is lost nothing is deleted, and what is written after the election follows.
func TestAgentAndLossOfTheLeader(t *testing.T) {
	eachVersion(t, func(t *testing.T, module string) {
		a := startAgents(t, module)
		c := a.agent
		health := keysConfig(c.httpAddress())
		health.Prefix, health.Resources = "", Resources{Collection: Health, Service: "web"}
		for i := range 20 {
			if err := c.putKey(t.Context(), fmt.Sprint("k", i), "1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.register(t.Context(), "web-1", `"one"`); err != nil {
			t.Fatal(err)
		}
		keys, web := follow(t, open(t, keysConfig(c.httpAddress()))), follow(t, metas{open(t, health)})
		shows(t, web, "web-1", `"one"`)
		leader := c.leader()
		a.servers[leader].Kill()
		c.eventually("another leader", func() error {
			if now := c.leader(); now == leader || now == "" {
				return fmt.Errorf("the leader is %q", now)
			}
			return c.putKey(t.Context(), "k0", "2")
		})
		c.eventually("a registration", func() error { return c.register(t.Context(), "web-1", `"two"`) })
		shows(t, keys, "k0", "2")
		shows(t, web, "web-1", `"two"`)
		for name, w := range map[string]*watched{"keys": keys, "health": web} {
			w.is(stream.InSync)
			if gone := w.deleted(); len(gone) > 0 || w.count(stream.Reset) != 1 {
				t.Errorf("%s: %q were deleted, %d resets", name, gone, w.count(stream.Reset))
			}
		}
	})
}

// leader returns the address of the leader; "": there is none.
func (c *consul) leader() (address string) {
	body, _, err := c.do(c.t.Context(), http.MethodGet, "/v1/status/leader", "")
	if err == nil {
		_, _ = fmt.Sscanf(string(body), "%q", &address)
	}
	return address
}

// shows waits until a subscriber has a value.
func shows(t *testing.T, w *watched, key, want string) {
	t.Helper()
	w.eventually(key+" = "+want, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := w.state[key].Value; got != want {
			return fmt.Errorf("it is %q, and the watch is %v: %s", got, w.Status().State, w.Status().Full())
		}
		return nil
	})
}
