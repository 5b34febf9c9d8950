//go:build servers

package nats

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestHeadersOfWritersOnAServer writes the headers that the server stores as they
// are, as any client can.
func TestHeadersOfWritersOnAServer(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	r := start(t, s, nil).has("a", "1")
	want := []string{"a", "1"}
	for i, header := range []string{
		"NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n",
		"NATS/1.0\r\nStatus: 100\r\nNats-Last-Consumer: 99\r\n\r\n",
		"NATS/1.0\r\nStatus: 100\r\nNats-Consumer-Stalled: orders.delete\r\n\r\n",
		"NATS/1.0 409 Consumer Deleted\r\n\r\n",
		"NATS/1.0 1\r\n\r\n",
		"NATS/1.0\r\nno colon\r\n\r\n",
		"no header at all\r\n\r\n",
	} {
		key := fmt.Sprint("k", i)
		publishRaw(t, server(t).Addr(), "$KV."+b.config.Bucket+"."+key, header, "")
		want = append(want, key, `""`)
		r.has(want...)
	}
	publishRaw(t, server(t).Addr(), "$KV."+b.config.Bucket+".m", "NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n", "5")
	r.has(append(want, "m", "5")...)
	r.resets(1)
}

// publishRaw publishes a message with a header as it is, which the client library
// would refuse.
func publishRaw(t *testing.T, address, subject, header, body string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"headers\":true,\"protocol\":1}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n",
		subject, len(header), len(header)+len(body), header, body)
	for in := bufio.NewScanner(c); in.Scan(); {
		if strings.HasPrefix(in.Text(), "-ERR") {
			t.Fatalf("%s: %s", subject, in.Text())
		}
		if in.Text() == "PONG" {
			return
		}
	}
	t.Fatal("no PONG")
}
