package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/views"
	api "github.com/watchtide/watchtide/openapi/watchtidev1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestRequestsOfAPrincipal: whoever makes too many gets 429, over each door, others are
// served, and an EventSource survives it.
func TestRequestsOfAPrincipal(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.Access.Limits.RequestsPerSecond = 1 })
	served, refused := 0, reply{}
	for refused.Response == nil && served < 1000 {
		if got := r.get("/v1/watches/orders", r.as("ann")...); got.StatusCode == http.StatusTooManyRequests {
			refused = got
		} else {
			served++
		}
	}
	if after, _ := strconv.Atoi(refused.Header.Get("Retry-After")); served < 10 || served > 100 || after < 1 || !strings.Contains(refused.text, "too many requests") {
		t.Fatalf("%d requests were served, then %s, Retry-After %d: %s", served, refused.Status, after, refused.text)
	}
	r.isPrivate("ann", refused)
	r.get("/v1/watches/orders", r.as("sam")...).want(t, 200, "")
	r.get("/v1/watches/orders").want(t, 401, "")
	r.get("/healthz", r.as("ann")...).want(t, 200, "")
	stream := r.get("/v1/watches/orders/events", append(r.as("ann"), "Accept: text/event-stream")...)
	if stream.StatusCode != http.StatusOK || !strings.Contains(stream.text, `"reason":"overloaded"`) || !strings.Contains(stream.text, "retry: ") {
		t.Errorf("an EventSource: %s %s", stream.Status, stream.text)
	}
	if _, err := r.grpc.GetWatch(r.over("ann"), &api.GetWatchRequest{Watch: "orders"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("over gRPC: %v", err)
	}
	call, err := r.grpc.WatchList(r.over("ann"), &api.WatchListRequest{Watch: "orders"})
	if err == nil {
		_, err = call.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a stream over gRPC: %v", err)
	}
	metrics := r.operations.get("/metrics", r.as("sam")...).text
	if !strings.Contains(metrics, `watchtide_requests_refused_total{mechanism="token"}`) || strings.Contains(metrics, "ann") {
		t.Error("the metrics do not count refused requests, or name somebody")
	}
}

// TestStreamsOfAPrincipal: whoever has too many gets no other one, in any way, until one has
// ended.
func TestStreamsOfAPrincipal(t *testing.T) {
	r := newGuarded(t, func(c *Config) { c.Access.Limits.Streams = 2 })
	first := r.follow("ann", "/v1/watches/orders/events", "identity")
	first.until("end_of_snapshot")
	r.follow("ann", "/v1/events?watch=orders&format=ndjson", "identity").until("end_of_snapshot")
	for _, path := range []string{"/v1/watches/orders/events", "/v1/watches/orders/changes"} {
		got := r.get(path, r.as("ann")...)
		if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" || !strings.Contains(got.text, "2 streams open with this credential, or another one of yours, of 2 at most") {
			t.Errorf("%s: %s %s", path, got.Status, got.text)
		}
	}
	stream := r.get("/v1/watches/orders/events", append(r.as("ann"), "Accept: text/event-stream")...)
	if stream.StatusCode != http.StatusOK || !strings.Contains(stream.text, `"reason":"overloaded"`) {
		t.Errorf("an EventSource: %s %s", stream.Status, stream.text)
	}
	call, err := r.grpc.WatchList(r.over("ann"), &api.WatchListRequest{Watch: "orders"})
	if err == nil {
		_, err = call.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("over gRPC: %v", err)
	}
	r.follow("sam", "/v1/watches/orders/events", "identity").until("end_of_snapshot")
	first.leave()
	for deadline := time.Now().Add(30 * time.Second); ; {
		got := r.get("/v1/watches/orders/events?until=end_of_snapshot", r.as("ann")...)
		if got.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after one has ended: %s", got.Status)
		}
	}
}

// TestViewsOfAPrincipal: they count for whoever asks, and the answer says so.
func TestViewsOfAPrincipal(t *testing.T) {
	own := views.New(views.Config{MaxPerClient: 1})
	t.Cleanup(own.Close)
	r := newGuarded(t, func(c *Config) { c.engine = own })
	r.follow("sam", "/v1/watches/orders/events?filter=value.eta%3E1", "identity").until("end_of_snapshot")
	for _, path := range []string{"/v1/watches/orders/events", "/v1/watches/orders/resources", "/v1/watches/orders/changes"} {
		got := r.get(path+"?filter=value.eta%3E2", r.as("sam")...)
		if got.StatusCode != http.StatusTooManyRequests || !strings.Contains(got.text, "you have as many different views as allowed, 1") || strings.Contains(got.text, "127.0.0.1") {
			t.Errorf("%s: %s %s", path, got.Status, got.text)
		}
	}
	r.get("/v1/watches/orders/resources", r.as("ann")...).want(t, 200, "")
}
