//go:build servers

package commands

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

// kept is how many resources of 300 bytes the test of what a start reads has.
const kept = 5000

// TestStartFromTheJournalReadsLittle: with a journal, a start of the gateway reads from its upstream what has changed
// since, and not all resources.
func TestStartFromTheJournalReadsLittle(t *testing.T) {
	value := fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", 290))
	fill := map[string]func(t *testing.T, address string) (source, watch string, change func(i int)){
		"etcd": func(t *testing.T, address string) (string, string, func(int)) {
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			for i := 0; i < kept; i += 100 {
				var puts []clientv3.Op
				for j := range 100 {
					puts = append(puts, clientv3.OpPut(fmt.Sprint("/k/", i+j), value))
				}
				if _, err := client.Txn(inTime(t)).Then(puts...).Commit(); err != nil {
					t.Fatal(err)
				}
			}
			return "{ type: etcd, endpoints: [%q] }", `prefix: "/k/"`, func(i int) {
				if _, err := client.Put(inTime(t), fmt.Sprint("/k/", i), value); err != nil {
					t.Fatal(err)
				}
			}
		},
		"nats": func(t *testing.T, address string) (string, string, func(int)) {
			conn, err := nats.Connect("nats://" + address)
			if err != nil {
				t.Fatal(err)
			}
			closed := make(chan struct{})
			conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
			t.Cleanup(func() { conn.Close(); <-closed })
			js, err := jetstream.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			bucket, err := js.CreateKeyValue(inTime(t), jetstream.KeyValueConfig{Bucket: "k"})
			if err != nil {
				t.Fatal(err)
			}
			put := func(i int) {
				if _, err := bucket.PutString(inTime(t), fmt.Sprint(i), value); err != nil {
					t.Fatal(err)
				}
			}
			for i := range kept {
				put(i)
			}
			return `{ type: nats, url: "nats://%s" }`, "bucket: k", put
		},
	}
	for name, fill := range fill {
		t.Run(name, func(t *testing.T) {
			server := started(t, name)
			proxy := realserver.NewProxy(t, server.Addr())
			source, watch, change := fill(t, server.Addr())
			config := file(t, "gateway.yaml", fmt.Sprintf("state: { dir: %q }\nsources: { s: "+source+" }\nwatches: { kept: { source: s, %s } }\n",
				filepath.Join(t.TempDir(), "state"), proxy.Addr(), watch))
			var read []int64
			for range 2 {
				before := proxy.Bytes(realserver.Client)
				g := serve(t, "--config", config)
				g.logs.await(t, `"state":"in_sync"`)
				read = append(read, proxy.Bytes(realserver.Client)-before)
				g.interrupt()
				for i := range 70 {
					change(i)
				}
			}
			if t.Logf("the first start reads %d bytes, the second one %d", read[0], read[1]); read[1] > read[0]/5 {
				t.Errorf("the second start reads %d bytes, the first one %d", read[1], read[0])
			}
		})
	}
}
