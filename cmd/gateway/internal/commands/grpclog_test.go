package commands

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

// gRPC's messages are lines of our log, at debug level.
func TestGRPCLogsThroughOurs(t *testing.T) {
	c, logs := asProcess(t, "serve", "--config", file(t, "gateway.yaml", quick), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--log-level", "debug")
	text := logs.await(t, `"msg":"listening"`)
	_, after, _ := strings.Cut(text, `"grpc":"`)
	address, _, _ := strings.Cut(after, `"`)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	logs.await(t, "bogus greeting")
	_ = c.Process.Signal(syscall.SIGTERM)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(logs.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a line of our log: %s", line)
		}
	}
}
