package commands

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// recording is a connection that remembers what was read.
type recording struct {
	net.Conn
	mu   sync.Mutex // guards the following field
	read bytes.Buffer
}

// Read implements net.Conn.
func (c *recording) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read.Write(p[:n])
	return n, err
}

// all returns it.
func (c *recording) all() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.read.Bytes())
}

// TestChangeIsOneRecord: a change of ordinary size comes in one record of TLS, also early on a connection, by
// both versions of HTTP.
func TestChangeIsOneRecord(t *testing.T) {
	dir, own := t.TempDir(), newPair(t, 1)
	rewrite(t, filepath.Join(dir, "cert.pem"), own.cert)
	rewrite(t, filepath.Join(dir, "key.pem"), own.key)
	rewrite(t, filepath.Join(dir, "gateway.yaml"), `
http: { tls: { cert_file: cert.pem, key_file: key.pem } }
sources: { local: { type: store } }
watches: { notes: { source: local } }
`)
	g := serve(t, "--config", filepath.Join(dir, "gateway.yaml"))
	writer := &http.Transport{TLSClientConfig: trusting(t, pair{}, own)}
	defer writer.CloseIdleConnections()
	for i, protocol := range []string{"http/1.1", "h2"} {
		var raw *recording
		client := &http.Transport{ForceAttemptHTTP2: protocol == "h2", DisableCompression: true}
		client.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			raw = &recording{Conn: c}
			config := trusting(t, pair{}, own)
			config.NextProtos = []string{protocol}
			secure := tls.Client(raw, config)
			return secure, secure.HandshakeContext(ctx)
		}
		defer client.CloseIdleConnections()
		response, err := (&http.Client{Transport: client}).Get("https://" + g.http + "/v1/watches/notes/events")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.ProtoMajor != i+1 {
			t.Fatalf("the stream is %s, want %s", response.Proto, protocol)
		}
		lines := bufio.NewReader(response.Body)
		readLine(t, lines, "event: end_of_snapshot")
		readLine(t, lines, "\n")
		value := strings.Repeat(fmt.Sprint(i), 8000)
		if status, answer := fetch(t, writer, "PUT", "https://"+g.http+"/v1/watches/notes/resources/a", `"`+value+`"`); status >= 300 {
			t.Fatalf("%d %s", status, answer)
		}
		readLine(t, lines, value)
		response.Body.Close()
		client.CloseIdleConnections()
		var large []int
		for all := bytes.NewReader(raw.all()); all.Len() >= 5; {
			head := make([]byte, 5)
			_, _ = io.ReadFull(all, head) // there are five bytes
			size := int(head[3])<<8 | int(head[4])
			if _, err := all.Seek(int64(size), io.SeekCurrent); err != nil {
				t.Fatal(err)
			}
			if size > 1300 && head[0] == 23 {
				large = append(large, size)
			}
		}
		if len(large) == 0 || large[len(large)-1] < len(value) {
			t.Errorf("%s: a change of %d bytes came in records of %d bytes", protocol, len(value), large)
		}
	}
}

// readLine reads lines until one contains a text.
func readLine(t *testing.T, from *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatalf("no line has %.40q: %v", text, err)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}
