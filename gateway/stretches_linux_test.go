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

// TestViewsShareNoStretches: clients of two views of a watch that come at once are sent what the view of each has, and those
// of all of the watch all of it, although the views have as many resources, of the same sizes.
func TestViewsShareNoStretches(t *testing.T) {
	onShards(t)
	const resources = 20_000
	r := newRealGateway(t, Config{StreamSettings: StreamSettings{MaxAge: -1}}, nil)
	defer http.DefaultClient.CloseIdleConnections()
	r.source.Steps <- func(s stream.Sink) error {
		return errors.Join(s.Reset("e2"), gatewaytest.UpsertAll(s, manyResources(resources)), s.Commit(resources))
	}
	for r.watch.Snapshot().Revision() != resources {
		<-r.watch.Changed()
	}
	url := "http://" + r.address + "/v1/events?watch=a&until=end_of_snapshot&prefix=default/web-0"
	views := []string{"0", "1", ""}
	want := map[string][]byte{}
	for _, of := range views {
		want[of] = snapshotIn(t, rawBody(t, url+of, "identity"))
		if n, all := bytes.Count(want[of], []byte(`"key":"default/web-0`+of)), bytes.Count(want[of], []byte("event: upsert")); n != all || n < resources/2 {
			t.Fatalf("the view of %q has %d resources, %d of them its own", of, all, n)
		}
	}
	made, sent, _ := r.gateway.shards.Stretches()
	var clients sync.WaitGroup
	for i := range 30 {
		clients.Go(func() {
			of := views[i%len(views)]
			if got := snapshotIn(t, rawBody(t, url+of, "identity")); !bytes.Equal(got, want[of]) {
				t.Errorf("a client of the view of %q is sent %d bytes that differ from the %d of one alone", of, len(got), len(want[of]))
			}
		})
	}
	clients.Wait()
	if more, again, _ := r.gateway.shards.Stretches(); more == made || again == sent {
		t.Errorf("%d stretches were made for the views, and sent %d times", more-made, again-sent)
	}
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
