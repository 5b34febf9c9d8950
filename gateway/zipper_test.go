package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestCompressedStreamsOfEveryKind makes random commits, of single events and of
// many, for streams that begin and end, read at once or late, with one watch or two,
// in both formats, compressed or not. In the end all hold the same, and the
// compressed ones end with the right checksum.
func TestCompressedStreamsOfEveryKind(t *testing.T) {
	for seed := range uint64(gatewaytest.Length(12, 6)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newZipWorld(t, seed).run() })
		})
	}
}

// zipWorld is one such history.
type zipWorld struct {
	*rig
	random   *rand.Rand
	aging    bool // then none is slow: a reader that has not read the end in time misses it
	revision uint64
	readers  []*zipReader
}

func newZipWorld(t *testing.T, seed uint64) *zipWorld {
	c := Config{StreamSettings: StreamSettings{Drain: -1, WriteTimeout: time.Hour, CompressionCache: []int64{0, 2000}[seed%2]}}
	if seed%3 == 0 {
		c.MaxAge = 15 * time.Second
	}
	w := &zipWorld{aging: c.MaxAge > 0, rig: newRig(t, c, "a", "b"), random: rand.New(rand.NewPCG(seed, 1)), revision: 1}
	w.Prime("a", 1, gatewaytest.Resource("first", 1, `"of a"`))
	w.Prime("b", 1, gatewaytest.Resource("first", 1, `"of b"`))
	return w
}

func (w *zipWorld) run() {
	for range 50 {
		switch w.random.IntN(6) {
		case 0, 1:
			w.open()
		case 2, 3, 4:
			w.write()
		case 5:
			if len(w.readers) > 0 && !w.aging {
				w.readers[w.random.IntN(len(w.readers))].toggle()
			}
		}
		if w.random.IntN(2) == 0 {
			synctest.Wait() // otherwise commits pile up
		}
		time.Sleep(time.Duration(w.random.IntN(800)) * time.Millisecond)
	}
	for _, r := range w.readers {
		r.slow(false)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	w.Registry.Remove("a")
	w.Registry.Remove("b")
	w.compare()
}

// open opens a stream twice: as it is, and compressed.
func (w *zipWorld) open() {
	path := []string{"watch=a", "watch=a&watch=b", "watch=b&format=ndjson", "watch=a&format=ndjson", "watch=a&prefix=k1"}[w.random.IntN(5)]
	coding := "gzip"
	if w.random.IntN(4) == 0 {
		path, coding = path+"&until=end_of_snapshot", "zstd"
	}
	for _, encoding := range []string{"identity", coding} {
		w.readers = append(w.readers, w.read(path, encoding))
	}
}

func (w *zipWorld) write() {
	w.revision++
	var changes []stream.Resource
	for range 1 + w.random.IntN(4) {
		size := []int{10, 100, 1000, 9000}[w.random.IntN(4)]
		value := `"` + strings.Repeat(fmt.Sprintf("%x", w.random.Uint32()), 1+size/8) + `"`
		changes = append(changes, gatewaytest.Resource(fmt.Sprint("k", len(changes), w.random.IntN(9)), w.revision, value))
	}
	w.Commit([]string{"a", "b"}[w.random.IntN(2)], w.revision, changes...)
}

// compare checks that every stream that is open to the end holds the same as its
// twin.
func (w *zipWorld) compare() {
	for i := 0; i < len(w.readers); i += 2 {
		plain, zipped := w.readers[i], w.readers[i+1]
		for _, r := range []*zipReader{plain, zipped} {
			if err := r.finish(); err != nil {
				w.t.Errorf("%s, %s: %v", r.path, r.encoding, err)
			}
		}
		if plain.reason != zipped.reason || plain.reason == "max_age" {
			continue // they ended at different times
		}
		if got, want := fmt.Sprint(zipped.state), fmt.Sprint(plain.state); got != want || plain.reason != "watch_removed" && plain.reason != "complete" {
			w.t.Errorf("%s, %s: compressed %.300s\nas it is %.300s", plain.path, plain.reason, got, want)
		}
	}
}

// zipReader is one of the streams, and what its client holds.
type zipReader struct {
	path, encoding string
	body           io.ReadCloser
	gate           chan struct{} // full: the client does not read
	stopped        bool
	ended          chan error
	text           bytes.Buffer
	state          map[string]string
	reason         string
}

func (w *zipWorld) read(path, encoding string) *zipReader {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gateway/v1/events?"+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encoding)
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := res.Header.Get("Content-Encoding"); got != strings.TrimPrefix(encoding, "identity") {
		w.t.Errorf("asked for %s, the answer is %q", encoding, got)
	}
	gatewaytest.Unzip(res)
	r := &zipReader{path: path, encoding: encoding, body: res.Body, ended: make(chan error, 1), gate: make(chan struct{}, 1)}
	go r.run()
	return r
}

func (r *zipReader) run() {
	defer r.body.Close()
	p := make([]byte, 4<<10)
	for {
		r.gate <- struct{}{}
		<-r.gate
		n, err := r.body.Read(p)
		r.text.Write(p[:n])
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			continue
		}
		r.ended <- err
		return
	}
}

func (r *zipReader) toggle() { r.slow(!r.stopped) }

func (r *zipReader) slow(stop bool) {
	if stop && !r.stopped {
		r.gate <- struct{}{}
	} else if !stop && r.stopped {
		<-r.gate
	}
	r.stopped = stop
}

// finish waits for the end of the body, and applies its events. The error describes
// a faulty end.
func (r *zipReader) finish() error {
	if err := <-r.ended; err != nil {
		return err
	}
	r.state = map[string]string{}
	for line := range strings.Lines(r.text.String()) {
		line = strings.TrimPrefix(line, "data: ")
		var e struct {
			Type, Watch, Key, Reason string
			Value                    json.RawMessage
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue // not data
		}
		switch e.Type {
		case "upsert":
			r.state[e.Watch+"/"+e.Key] = string(e.Value)
		case "delete":
			delete(r.state, e.Watch+"/"+e.Key)
		case "goodbye":
			r.reason = e.Reason
		}
	}
	return nil
}

// sink is an outlet that keeps only the number of bytes.
type sink struct{ bytes int }

func (s *sink) Write(p []byte) { s.bytes += len(p) }

// TestAttackLargeValueInAShard checks that a value of 16 MiB is neither compressed
// nor copied while others wait for it, nor kept in the cache of compressed pieces.
func TestAttackLargeValueInAShard(t *testing.T) {
	const size = 16<<20 - 16
	r := newRealGateway(t, Config{}, nil)
	r.write("k", 2, `"`+strings.Repeat("0123456789abcdef", size/16)+`"`)
	for r.watch.Snapshot().Revision() != 2 {
		<-time.After(time.Millisecond)
	}
	c := session.New(r.gateway.now.Load().deps, session.Request{Format: frame.SSE, Coding: wire.Gzip, Watches: []session.Choice{{Name: "a"}}}, nil, []*watch.Watch{r.watch})
	c.Lease.CallWhenGranted(func() {})
	defer c.Release()
	var out sink
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	text := session.NewText(&c, &out, wire.Sum{})
	for c.Turn(&text) {
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes in %s", out.bytes, time.Since(began))
	if out.bytes < size {
		t.Errorf("%d bytes were written of %d: it was compressed", out.bytes, size)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes were allocated for it", grown)
	}
	if kept := r.gateway.pieces.Stats().Bytes; kept > 64<<10 {
		t.Errorf("%d bytes are kept in the cache", kept)
	}
	// Its client reads the original value.
	x, err := http.NewRequest(http.MethodGet, "http://"+r.address+"/v1/events?watch=a&until=end_of_snapshot", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(x) // asks for gzip, and reads it
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil || !res.Uncompressed || bytes.Count(all, []byte("0123456789abcdef")) != size/16 {
		t.Errorf("%d bytes, uncompressed %t, %v", len(all), res.Uncompressed, err)
	}
	http.DefaultClient.CloseIdleConnections()
}
