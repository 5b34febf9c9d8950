//go:build servers

package consul

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// startDatacenters starts a server in each of two datacenters that are joined.
func startDatacenters(t *testing.T, module string) (here, there *consul) {
	var joined []string
	start := func(name string) *consul {
		ports, wan := realserver.FreePort(t), realserver.FreePort(t)
		args := append([]string{"agent", "-server", "-bootstrap-expect=1", "-bind=127.0.0.1", "-client=127.0.0.1", "-node=test", "-datacenter=" + name,
			"-data-dir=" + t.TempDir(), fmt.Sprint("-http-port=", ports), "-grpc-port=-1", "-grpc-tls-port=-1", "-dns-port=-1",
			fmt.Sprint("-server-port=", realserver.FreePort(t)), fmt.Sprint("-serf-lan-port=", realserver.FreePort(t)), fmt.Sprint("-serf-wan-port=", wan),
			"-log-level=warn", "-hcl=disable_update_check=true", "-hcl=performance { raft_multiplier = 1 }"}, joined...)
		address := fmt.Sprintf("127.0.0.1:%d", ports)
		c := &consul{t: t, http: "http://" + address}
		c.Server = realserver.Command{Path: realserver.Build(t, module), Args: args, Address: address}.Start(t)
		joined = append(joined, fmt.Sprintf("-retry-join-wan=127.0.0.1:%d", wan))
		c.eventually("a leader", func() error { return c.putKey(t.Context(), "in", `"`+name+`"`) })
		return c
	}
	here, there = start("dc1"), start("dc2")
	here.eventually("the other datacenter", func() error {
		_, _, err := here.do(t.Context(), http.MethodGet, "/v1/kv/app/in?dc=dc2", "")
		return err
	})
	// The id of the cluster is in the name of the order, so a watch that began without it would have another one later.
	here.eventually("its certificate authority", func() error {
		roots, _, err := here.do(t.Context(), http.MethodGet, "/v1/connect/ca/roots", "")
		var of struct{ TrustDomain string }
		if err == nil {
			err = json.Unmarshal(roots, &of)
		}
		if err == nil && of.TrustDomain == "" {
			err = fmt.Errorf("it has no id: %s", roots)
		}
		return err
	})
	return here, there
}

// TestAnotherDatacenter: a watch follows, and writes to, the datacenter that it names, by a server of another
// one. While that datacenter cannot be reached, the watch is stale and nothing is deleted.
func TestAnotherDatacenter(t *testing.T) {
	eachVersion(t, func(t *testing.T, module string) {
		here, there := startDatacenters(t, module)
		config := keysConfig(here.httpAddress())
		config.Datacenter = "dc2"
		instances := config
		instances.Prefix, instances.Resources = "", Resources{Collection: Health, Service: "web", Datacenter: "dc2"}
		for n := range 30 { // the index of this datacenter is ahead of the other's
			if err := here.putKey(t.Context(), "in", fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
		}
		register := func(value string) error { return there.register(t.Context(), "web-1", value) }
		if err := register(`"one"`); err != nil {
			t.Fatal(err)
		}
		keys, web := follow(t, open(t, config)), follow(t, metas{open(t, instances)})
		shows(t, keys, "in", `"dc2"`)
		shows(t, web, "web-1", `"one"`)

		w := newKVWriter(t, config, slog.New(slog.DiscardHandler))
		if _, created, err := w.Put(t.Context(), stream.PutRequest{Key: "written", Value: []byte(`"by the gateway"`)}); err != nil || !created {
			t.Fatalf("a write: created %t, %v", created, err)
		}
		shows(t, keys, "written", `"by the gateway"`)
		if all, _, err := there.keysShown(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("the other datacenter has %v, %v", all, err)
		}
		if all, _, err := here.keysShown(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("this datacenter has %v, %v", all, err)
		}

		there.Kill()
		keys.is(stream.Stale)
		web.is(stream.Stale)
		if err := there.Restart(); err != nil {
			t.Fatal(err)
		}
		there.eventually("a leader", func() error { return there.putKey(t.Context(), "in", `"dc2 again"`) })
		there.eventually("a registration", func() error { return register(`"two"`) })
		shows(t, keys, "in", `"dc2 again"`)
		shows(t, web, "web-1", `"two"`)
		for name, one := range map[string]*watched{"keys": keys, "health": web} {
			if gone := one.deleted(); len(gone) > 0 || one.count(stream.Reset) != 1 {
				t.Errorf("%s: %q were deleted, %d resets", name, gone, one.count(stream.Reset))
			}
		}
	})
}
