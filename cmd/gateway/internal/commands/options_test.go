package commands

import (
	"crypto/tls"
	"log/slog"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config"
	"github.com/watchtide/watchtide/internal/log"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// Every option of the configuration reaches the code that uses it.
func TestEveryOptionArrives(t *testing.T) {
	history := config.History{MaxAge: time.Minute, MaxDeletes: 5, MaxBytes: 6}
	secure := &tls.Config{}
	c := &config.Config{
		HTTP: config.HTTP{Hosts: []string{"b"}, AllowedOrigins: []string{"https://a"}, DeliveryReports: true, MaxConnections: 21, BodyBudget: 18, AnswerBudget: 19},
		Stream: config.Stream{
			Heartbeat: 1, WriteTimeout: 2, Retry: 3, MaxAge: 4, Drain: 5, AheadWait: 6, PrimeWait: 7, StaleAllowed: 8,
			MaxSubscribers: 9, SnapshotBudget: 10, MinRate: 20, Pump: "goroutines", Compression: "none", CompressionCache: 17,
		},
		Metrics: config.Metrics{Enabled: true},
	}
	w := config.Watch{
		Name: "w", Source: "s", Required: true, Linger: 1, History: history, SnapshotTimeout: 2,
		Collection: "mounts", Watch: "up", Prefix: "p/", LabelsAt: "meta.labels",
	}
	g := config.GRPCSource{
		Address: "a:1", TLS: secure, Metadata: config.Metadata{"k": "v"}, Keepalive: 1, StallAfter: 2, MaxMessageBytes: 3,
	}
	forGateway := gatewayConfig(c)
	forGateway.AfterRush = nil // is no option, and cannot be compared
	for _, pair := range []struct{ got, want any }{
		{forGateway, gateway.Config{
			Hosts: []string{"b"}, AllowedOrigins: []string{"https://a"}, DeliveryReports: true, Heartbeat: 1, WriteTimeout: 2, Retry: 3, MaxAge: 4, Drain: 5,
			AheadWait: 6, PrimeWait: 7, StaleAllowed: 8, MaxSubscribers: 9,
			SnapshotBudget: 10, MaxConnections: 21, BodyBudget: 18, AnswerBudget: 19, MinRate: 20, Pump: "goroutines", Compression: "none", CompressionCache: 17, Metrics: true,
		}},
		{watchConfig(w), watch.Config{
			Name: "w", SourceName: "s", OnDemand: true, Required: true, Linger: 1, SnapshotTimeout: 2, LabelsAt: "meta.labels",
			History: log.History{MaxAge: time.Minute, MaxDeletes: 5, MaxBytes: 6},
		}},
		{storeConfig(config.StoreSource{MaxValueBytes: 1, MaxBytes: 2}), store.Config{MaxValueBytes: 1, MaxBytes: 2}},
		{hostConfig(config.HostSource{Interval: 1}, w), host.Config{Collection: "mounts", Interval: 1}},
		{grpcConfig(g, w), grpcsource.Config{
			Address: "a:1", Watch: "up", Prefix: "p/", TLS: secure, Metadata: map[string]string{"k": "v"},
			Keepalive: 1, StallAfter: 2, MaxMessageBytes: 3,
		}},
	} {
		if !reflect.DeepEqual(pair.got, pair.want) {
			t.Errorf("got  %+v\nwant %+v", pair.got, pair.want)
		}
	}
}

// TestSourceArrives: the longest wait and the type are those of the source.
func TestSourceArrives(t *testing.T) {
	u := newUpstreams(slog.New(slog.DiscardHandler), nil, nil).next(&config.Config{Sources: []config.Source{{Name: "s", Type: config.Store, RetryMax: time.Minute}}})
	got, err := u.configure(watch.NewRegistry(), config.Watch{Name: "w", Source: "s"}, "", u.logger)
	if err != nil || got.Backoff.Max != time.Minute || got.SourceType != "store" {
		t.Errorf("at most %v of a source of type %q, %v", got.Backoff.Max, got.SourceType, err)
	}
	if got.Close != nil {
		got.Close()
	}
	if of, err := u.configure(watch.NewRegistry(), config.Watch{Name: "v", ViewOf: "w"}, "", u.logger); err != nil || of.SourceType != "view" {
		t.Errorf("a view has a source of type %q, %v", of.SourceType, err)
	}
}

// TestMemoryIsReturnedAfterARush checks that the command returns memory, which the
// library leaves to its user.
func TestMemoryIsReturnedAfterARush(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	gatewayConfig(&config.Config{}).AfterRush()
	runtime.ReadMemStats(&after)
	if n := after.NumForcedGC - before.NumForcedGC; n < 2 {
		t.Errorf("%d collections were asked for, want 2", n)
	}
}

// Off in a configuration means the same as a negative duration where it is used.
func TestOffIsNegative(t *testing.T) {
	if config.Off >= 0 {
		t.Errorf("Off is %d", config.Off)
	}
}
