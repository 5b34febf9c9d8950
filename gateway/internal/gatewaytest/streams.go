package gatewaytest

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/metrics"
	"github.com/watchtide/watchtide/gateway/internal/netconn"
	"github.com/watchtide/watchtide/gateway/internal/session"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// NewDeps returns the dependencies of streams of the watches, with the defaults of a
// gateway, no limits and no compression.
func NewDeps(w *Watches) *session.Deps {
	m := metrics.New(w.Registry, "test", "test")
	return &session.Deps{
		Settings: session.Settings{
			Heartbeat: 15 * time.Second, WriteTimeout: 10 * time.Second, AheadWait: 3 * time.Second,
			Retry: 2 * time.Second, MaxAge: 30 * time.Minute, MinRate: 4 << 10,
		},
		Instance: "test",
		Log:      slog.New(slog.DiscardHandler), Metrics: m, Admission: limits.New(limits.Limits{}, 10*time.Second),
		Snapshots: limits.NewSnapshotBudget(64<<20, m), Subscribers: introspection.New(slog.New(slog.DiscardHandler)),
	}
}

// Open returns an admitted stream of the watches that a request names.
func Open(t testing.TB, w *Watches, d *session.Deps, c limits.Client, req session.Request) session.Session {
	t.Helper()
	var watches []*watch.Watch
	for _, choice := range req.Watches {
		one, found := w.Registry.Watch(choice.Name)
		if !found {
			t.Fatalf("there is no watch %q", choice.Name)
		}
		watches = append(watches, one)
	}
	return open(t, d, c, req, watches)
}

// OpenNarrow returns an admitted stream of a watch, narrowed to the keys with a prefix; all
// of it if that is empty.
func OpenNarrow(t testing.TB, w *Watches, d *session.Deps, c limits.Client, req session.Request, prefix string) session.Session {
	t.Helper()
	if prefix == "" {
		return Open(t, w, d, c, req)
	}
	definition, err := view.Parse(view.Params{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	choice := &req.Watches[0]
	all, _ := w.Registry.Watch(choice.Name)
	choice.View = introspection.ViewOf(choice.Name, definition)
	part, err := w.Views.Open(all, definition, views.Request{Client: c.String()})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, d, c, req, []*watch.Watch{part})
}

func open(t testing.TB, d *session.Deps, c limits.Client, req session.Request, watches []*watch.Watch) session.Session {
	t.Helper()
	names := make([]string, len(watches))
	for i, w := range watches {
		names[i] = w.Name()
	}
	ref, refused := d.Admission.Enter(c, names)
	if refused != nil {
		t.Fatal(refused)
	}
	out := session.New(d, req, nil, watches)
	out.AdmissionRef = ref
	return out
}

// Carry takes a stream with its connection from net/http. If it returns false, nothing
// has happened.
type Carry func(http.ResponseWriter, *http.Request, session.Session) bool

// Serve serves the streams of the watches at /v1/events, on a network in memory.
// Streams that are not carried are answered with a 503.
func Serve(t testing.TB, w *Watches, d *session.Deps, carry Carry) (*Network, *http.Client) {
	t.Helper()
	network := NewNetwork()
	server := &http.Server{ConnContext: netconn.WithConn, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		req, p := session.ParseRequest(r.URL.RawQuery, r.Header, "")
		if p != nil {
			t.Error(p)
			return
		}
		c := Open(t, w, d, limits.Client{}, req)
		if !carry(rw, r, c) {
			c.Release()
			d.Admission.Leave(c.AdmissionRef)
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netconn.Listen(network, d.WriteTimeout, d.Log)) }()
	transport := &http.Transport{DialContext: network.Dial, DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-served
	})
	return network, &http.Client{Transport: transport}
}
