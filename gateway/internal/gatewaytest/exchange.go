package gatewaytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"
	"github.com/watchtide/watchtide/gateway/internal/session"
)

// Exchange is one response as its client sees it.
type Exchange struct {
	*http.Response
	Cancel context.CancelFunc
	Ended  chan struct{} // closed at the end of the body

	mu   sync.Mutex // guards the following fields
	body bytes.Buffer
	err  error // at the end of the body; nil: it ended cleanly
}

// Send sends a request and reads the answer as it arrives, until the end of the test at
// the latest. Headers are "Name: value".
func Send(t testing.TB, client *http.Client, method, path string, headers ...string) *Exchange {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	Unzip(res)
	x := &Exchange{Response: res, Cancel: cancel, Ended: make(chan struct{})}
	go x.read()
	t.Cleanup(func() { cancel(); <-x.Ended })
	return x
}

func (x *Exchange) read() {
	defer close(x.Ended)
	defer x.Body.Close()
	p := make([]byte, 64<<10)
	for {
		n, err := x.Body.Read(p)
		x.mu.Lock()
		x.body.Write(p[:n])
		if err != nil && err != io.EOF {
			x.err = err
		}
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Text returns everything received so far.
func (x *Exchange) Text() string {
	synctest.Wait()
	return x.received()
}

func (x *Exchange) received() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.body.String()
}

// Take returns what was received since the last take.
func (x *Exchange) Take() string {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.body.String()
	x.body.Reset()
	return s
}

// Over reports whether the body has ended, and how.
func (x *Exchange) Over() (bool, error) {
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	return session.Closed(x.Ended), x.err
}

// Unzip makes the body of a response readable. The body ends without an error only if
// its checksum and its length are right, and nothing follows.
func Unzip(res *http.Response) {
	switch res.Header.Get("Content-Encoding") {
	case "gzip":
		res.Body = &unzippedBody{ReadCloser: res.Body, open: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}
	case "zstd":
		// With a concurrency of 1 it reads no more than it needs, and has no goroutine.
		res.Body = &unzippedBody{ReadCloser: res.Body, open: func(r io.Reader) (io.Reader, error) {
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		}}
	}
}

// unzippedBody decompresses what it reads, as it arrives.
type unzippedBody struct {
	io.ReadCloser
	open func(io.Reader) (io.Reader, error)
	r    io.Reader // nil: nothing was read yet
}

// Read implements io.Reader.
func (b *unzippedBody) Read(p []byte) (n int, err error) {
	if b.r == nil {
		if b.r, err = b.open(b.ReadCloser); err != nil {
			return 0, err
		}
	}
	return b.r.Read(p)
}
