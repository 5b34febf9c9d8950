package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/internal/memory"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// TestReplicas: two gateways that know each other, and one that is down, are shown by either, and
// neither shows itself as its sibling.
func TestReplicas(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	var first, second *Gateway
	servers := [2]*httptest.Server{}
	for i, g := range []**Gateway{&first, &second} {
		servers[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*g).OperationsHandler().ServeHTTP(w, r) }))
		t.Cleanup(servers[i].Close)
	}
	addresses := []string{servers[0].URL, servers[1].URL, down.URL}
	for name, g := range map[string]**Gateway{"one": &first, "two": &second} {
		registry := watch.NewRegistry()
		t.Cleanup(registry.Close)
		made, err := New(Config{Registry: registry, Instance: name, Version: "1.2.3", Metrics: true, Replicas: addresses, StreamSettings: StreamSettings{MaxSubscribers: 10}})
		if err != nil {
			t.Fatal(err)
		}
		*g = made
	}
	for i, self := range []string{"one", "two"} {
		var got struct {
			introspection.ReplicasAnswer
			Siblings []introspection.Sibling
		}
		answer, err := http.Get(servers[i].URL + "/v1/replicas")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got.Instance != self || got.Self.Instance != self || !got.Self.Ready || got.Self.Limits[0].Most != 10 || answer.Header.Get(instanceHeader) != self {
			t.Errorf("%+v", got.Self)
		}
		if len(got.Siblings) != 2 {
			t.Fatalf("%s has %d siblings: %+v", self, len(got.Siblings), got.Siblings)
		}
		other := [2]string{"two", "one"}[i]
		for _, s := range got.Siblings {
			if s.Address == down.URL && !strings.Contains(s.Error, "refused") || s.Address != down.URL && (s.Instance == nil || s.Instance.Instance != other || s.Instance.Version != "1.2.3") {
				t.Errorf("%s: %+v", self, s)
			}
		}
	}
}

// TestInstanceShowsMemory: what each watch holds under its own ceiling, and all of them under the
// one that they share.
func TestInstanceShowsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.NewCeiling(100 << 20)
		registry := watch.NewRegistry()
		defer registry.Close()
		for _, name := range []string{"large", "small"} {
			source := stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
				err := errors.Join(sink.Reset("e"), sink.Upsert(gatewaytest.Resource("k", 1, `"`+strings.Repeat("x", 4096)+`"`)), sink.Commit(1))
				<-ctx.Done()
				return err
			})
			if _, err := registry.Add(watch.Config{Name: name, Source: source, MaxBytes: map[string]int64{"small": 10 << 20}[name], Memory: shared}); err != nil {
				t.Fatal(err)
			}
		}
		g, err := New(Config{Registry: registry, Metrics: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := g.now.Load().introspection.Self(time.Now())
		all := int64(0)
		for i, most := range []int64{0, 10 << 20} {
			m := got.Watches[i].Memory
			if m.Used < 4096 || m.Served < 4096 || m.Served > m.Used || m.Most != most || m.MostServed != most/5*2 {
				t.Errorf("%s: %+v", got.Watches[i].Name, m)
			}
			all += m.Used
		}
		limits := map[string]introspection.Limit{}
		for _, l := range got.Limits {
			limits[l.Name] = l
		}
		if l := limits["watches"]; l.Used != all || l.Used != shared.Held() || l.Most != 100<<20 {
			t.Errorf("together they hold %d: %+v", all, l)
		}
		if l := limits["served"]; l.Used != shared.Logs() || l.Most != 40<<20 {
			t.Errorf("%+v", l)
		}
	})
}

// TestInstanceIsForOperators: the public handler has neither an instance nor its siblings, and
// every answer names the instance, whatever it is.
func TestInstanceIsForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{HTTPSettings: HTTPSettings{Hosts: []string{"app.example.com"}}, Metrics: true}, "services")
		r.Prime("services", 7)
		synctest.Wait()
		for _, path := range []string{introspection.SiblingPath, "/v1/replicas"} {
			if x := r.get(path); x.StatusCode != 404 {
				t.Errorf("%s: %d %s", path, x.StatusCode, x.Text())
			}
		}
		for _, path := range []string{"/v1/watches", "/v1/watches/services/changes", "/v1/watches/services/resources", "/v1/watches/services/history", "/v1/watches/nothing", "/v1/nothing", "/healthz", "/readyz", "/openapi.json", "/", "/v1/events?watch=services&until=end_of_snapshot"} {
			if x := r.get(path); x.Header.Get(instanceHeader) != "test" {
				t.Errorf("%s: the instance is %q", path, x.Header.Get(instanceHeader))
			}
		}
	})
}

// TestSlowOperators: large answers for operators do not stay in memory because somebody reads a
// little now and then.
func TestSlowOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Metrics: true})
		for i := range 1500 {
			r.Add(watch.Config{Name: fmt.Sprintf("%s-%d", strings.Repeat("w", 50), i)})
		}
		for _, path := range []string{"/v1/instance", "/v1/replicas", "/v1/topology"} {
			c, began := r.dial("GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), time.Now()
			for p := make([]byte, 1<<10); ; time.Sleep(4 * time.Second) {
				if _, err := io.ReadFull(c.Conn, p); err != nil {
					break
				}
			}
			if took := time.Since(began); took < netconn.RateWindow/2 || took > 2*netconn.RateWindow {
				t.Errorf("%s: the answer ended after %s", path, took)
			}
		}
	})
}
