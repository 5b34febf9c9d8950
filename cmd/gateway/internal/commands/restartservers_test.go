//go:build servers

package commands

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

var resourcesFlag = flag.Int("resources", 2000, "restart a gateway with so many resources of 300 bytes")

// text is a value of about 300 bytes.
func text(i, version int) string {
	return fmt.Sprintf(`{"n":%d,"version":%d,"pad":"%0260d"}`, i, version, i)
}

// TestRestartWithoutADisk: a gateway without a state folder is restarted, and meanwhile 70 resources change. A client is sent
// what differs. With -v it prints what that takes, and with -args -resources 100000 for as many as in the documentation.
func TestRestartWithoutADisk(t *testing.T) {
	n := *resourcesFlag
	for _, test := range []struct {
		name     string
		upstream func(t *testing.T) (config string, change func() (config string))
		exact    bool // a client without digests is sent what differs as well
	}{
		{"etcd", func(t *testing.T) (string, func() string) { return etcdThatChanges(t, n, false, false) }, true},
		{"etcd, compacted", func(t *testing.T) (string, func() string) { return etcdThatChanges(t, n, true, false) }, false},
		{"etcd, after snapshot restore", func(t *testing.T) (string, func() string) { return etcdThatChanges(t, n, false, true) }, false},
		{"files", func(t *testing.T) (string, func() string) { return filesThatChange(t, n) }, false},
		{"Consul", func(t *testing.T) (string, func() string) { return consulThatChanges(t, n) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			config, change := test.upstream(t)
			address := realserver.FreeAddress(t)
			const settings = "stream: { drain_delay: 0s, prime_wait: 60s }\n"
			g := serve(t, "--http", address, "--config", file(t, "before.yaml", settings+config))
			received := &counting{next: &http.Transport{DisableCompression: true}}
			c, err := client.New("http://"+address, client.Options{Transport: received})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			replica := c.Replica(t.Context(), "notes")
			defer replica.Close()
			if err := replica.Ready(inTime(t)); err != nil || replica.Len() != n {
				t.Fatalf("%d resources, error %v", replica.Len(), err)
			}
			all, err := readUp(inTime(t), address, "", "")
			if err != nil {
				t.Fatal(err)
			}
			g.interrupt()
			stopped := time.Now()
			config = change()
			received.bytes.Store(0)
			serve(t, "--http", address, "--config", file(t, "after.yaml", settings+config))
			awaitReplica(t, replica, func() bool { return replica.Verified().After(stopped) && replica.Freshness().State == client.InSync })
			digested := received.bytes.Load()
			plain, err := readUp(inTime(t), address, all.id, "")
			if err != nil {
				t.Fatal(err)
			}
			percent := func(n int64) float64 { return 100 * float64(n) / float64(all.bytes) }
			t.Logf("| %s | %d resources, %d bytes | by digest: %d bytes, %.2f %% | by position: %d resets, %d events, %d bytes, %.2f %% |", test.name,
				n, all.bytes, digested, percent(digested), plain.resets, plain.events, plain.bytes, percent(int64(plain.bytes)))
			if test.exact && (plain.resets > 0 || plain.events > 100) {
				t.Errorf("a client without digests is sent %d resets and %d events", plain.resets, plain.events)
			}
			// The keys of the buckets with 70 resources, these, and the table.
			if most := int64(min(70, n/16)*16*60 + 70*500 + 16*n/16); digested > most {
				t.Errorf("%d bytes were sent, want at most %d", digested, most)
			}
			if replica.Len() != n-20 {
				t.Errorf("%d resources, want %d", replica.Len(), n-20)
			}
		})
	}
}

// etcdThatChanges is an etcd of which 70 keys change. Its history is compacted then, or it is restored from a snapshot before.
func etcdThatChanges(t *testing.T, n int, compacted, restored bool) (config string, change func() string) {
	dir := t.TempDir()
	start := func(options ...string) (*realserver.Server, *clientv3.Client, string) {
		options = append([]string{"-listen", realserver.FreeAddress(t)}, options...)
		server := realserver.Start(t, realserver.Build(t, "etcd"), options...)
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, DialTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return server, c, fmt.Sprintf("sources: { s: { type: etcd, endpoints: [%q] } }\nwatches: { notes: { source: s, prefix: /k/ } }\n", server.Addr())
	}
	server, c, config := start("-data", dir)
	for i := 0; i < n; i += 100 {
		var puts []clientv3.Op
		for j := i; j < min(i+100, n); j++ {
			puts = append(puts, clientv3.OpPut(fmt.Sprint("/k/", j), text(j, 0)))
		}
		if _, err := c.Txn(inTime(t)).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return config, func() string {
		if restored {
			server.Kill()
			_, c, config = start("-data", t.TempDir(), "-restore", filepath.Join(dir, "member.etcd", "member", "snap", "db"), "-bump", "0")
		}
		for i := range 70 {
			op := clientv3.OpPut(fmt.Sprint("/k/", i*n/70), text(i*n/70, 1))
			if i < 20 {
				op = clientv3.OpDelete(fmt.Sprint("/k/", i*n/70))
			}
			if _, err := c.Do(inTime(t), op); err != nil {
				t.Fatal(err)
			}
		}
		if compacted {
			now, err := c.Get(inTime(t), "/k/")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compact(inTime(t), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
		}
		return config
	}
}

// filesThatChange is a folder with a file for each resource.
func filesThatChange(t *testing.T, n int) (string, func() string) {
	dir := t.TempDir()
	write := func(i, version int) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".json")), []byte(text(i, version)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		write(i, 0)
	}
	config := fmt.Sprintf("sources: { s: { type: files, dir: %q } }\nwatches: { notes: { source: s } }\n", dir)
	return config, func() string {
		for i := range 70 {
			if i < 20 {
				if err := os.Remove(filepath.Join(dir, fmt.Sprint(i*n/70, ".json"))); err != nil {
					t.Fatal(err)
				}
				continue
			}
			write(i*n/70, 1)
		}
		return config
	}
}

// consulThatChanges is a Consul, which takes minutes to compile.
func consulThatChanges(t *testing.T, n int) (string, func() string) {
	if os.Getenv("WATCHTIDE_FULL_CONSUL") == "" {
		t.Skip("WATCHTIDE_FULL_CONSUL is not set")
	}
	address := startConsul(t)
	send := func(method string, i, version int) {
		request, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://%s/v1/kv/notes/%d", address, i), strings.NewReader(text(i, version)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", method, response.Status)
		}
	}
	for i := range n {
		send(http.MethodPut, i, 0)
	}
	config := fmt.Sprintf("sources: { s: { type: consul, http_address: %q } }\nwatches: { notes: { source: s, collection: kv, prefix: notes/ } }\n", address)
	return config, func() string {
		for i := range 70 {
			method := http.MethodPut
			if i < 20 {
				method = http.MethodDelete
			}
			send(method, i*n/70, 1)
		}
		return config
	}
}
