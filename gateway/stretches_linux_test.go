package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// TestStretchesOverTCP: clients that come at once are sent the same from memory files as one that comes alone
// is from the log, and no file is left open.
func TestStretchesOverTCP(t *testing.T) { testStretchesOverTCP(t, 0, 1) }

// TestStretchesOfStreamsThatWait: so are clients that wait for a place in the snapshot budget, which has two. Nine of the
// ten clients of each encoding can take all stretches, of which an uncompressed snapshot has 28.
func TestStretchesOfStreamsThatWait(t *testing.T) {
	testStretchesOverTCP(t, 512<<10, 150)
}

func testStretchesOverTCP(t *testing.T, budget int64, least uint64) {
	onShards(t)
	const resources = 20_000
	r := newRealGateway(t, Config{StreamSettings: StreamSettings{MaxAge: -1, SnapshotBudget: budget}}, nil)
	defer http.DefaultClient.CloseIdleConnections()
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, manyResources(resources)), s.Commit(resources))
	}
	for r.watch.Snapshot().Revision() != resources {
		<-r.watch.Changed()
	}
	url := "http://" + r.address + "/v1/events?watch=a&until=end_of_snapshot"
	want := snapshotIn(t, rawBody(t, url, "identity"))
	if n := bytes.Count(want, []byte("event: upsert")); n != resources {
		t.Fatalf("one client is sent %d resources of %d", n, resources)
	}
	waitIdle()
	open := descriptors(t)
	var clients sync.WaitGroup
	for i := range 30 {
		clients.Go(func() {
			encoding := []string{"identity", "gzip", "zstd"}[i%3]
			res := &http.Response{Header: http.Header{"Content-Encoding": {encoding}}, Body: io.NopCloser(bytes.NewReader(rawBody(t, url, encoding)))}
			gatewaytest.Unzip(res)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Error(err)
			}
			if got := snapshotIn(t, body); !bytes.Equal(got, want) {
				t.Errorf("client %d is sent %d bytes that differ from the %d of one alone", i, len(got), len(want))
			}
		})
	}
	clients.Wait()
	made, sent, _ := r.gateway.shards.Stretches()
	t.Logf("%d stretches were made, and sent %d times", made, sent)
	if made == 0 || sent < max(made, least) {
		t.Errorf("%d stretches were made, and sent %d times, want %d or more", made, sent, least)
	}
	http.DefaultClient.CloseIdleConnections()
	await(t, func() (bool, string) {
		more := descriptors(t) - open
		_, _, bytes := r.gateway.shards.Stretches()
		return more <= 0 && bytes == 0, fmt.Sprintf("%d descriptors are still open, and files have %d bytes", more, bytes)
	})
}

// snapshotIn returns what follows the reset in a stream, up to the end of the snapshot. A status follows that, if the
// stream has waited.
func snapshotIn(t *testing.T, body []byte) []byte {
	t.Helper()
	_, after, found := bytes.Cut(body, []byte("event: reset"))
	snapshot, _, ended := bytes.Cut(after, []byte("event: end_of_snapshot"))
	if !found || !ended {
		t.Errorf("a body of %d bytes has no snapshot that ends", len(body))
	}
	return snapshot
}
