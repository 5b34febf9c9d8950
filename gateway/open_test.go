package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream/watch"
)

// starting is a gateway that opens its public listener itself.
type starting struct {
	*gatewaytest.Watches
	t        *testing.T
	public   *gatewaytest.Network
	private  *gatewaytest.Network
	began    time.Time
	opened   chan time.Duration // since it began
	refusal  error              // of Open
	stop     context.CancelFunc
	served   chan error
	operator *http.Client
}

func startGateway(t *testing.T, refusal error, watches ...string) *starting {
	t.Helper()
	s := &starting{
		Watches: gatewaytest.NewWatches(t, watches...), t: t, public: gatewaytest.NewNetwork(), private: gatewaytest.NewNetwork(),
		began: time.Now(), opened: make(chan time.Duration, 1), refusal: refusal, served: make(chan error, 1),
	}
	s.Add(watch.Config{Name: "lazy", OnDemand: true}) // nobody waits for it
	g, err := New(Config{Registry: s.Registry, Logger: slog.New(slog.DiscardHandler), StreamSettings: StreamSettings{PrimeWait: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.served <- g.Serve(ctx, Listeners{Open: s.open, Operations: s.private}) }()
	transport := &http.Transport{DialContext: s.private.Dial, DisableKeepAlives: true}
	s.operator = &http.Client{Transport: transport}
	t.Cleanup(func() {
		stop()
		err := <-s.served
		s.served <- err
	})
	return s
}

func (s *starting) open(context.Context) (web, calls net.Listener, err error) {
	s.opened <- time.Since(s.began)
	if s.refusal != nil {
		return nil, nil, s.refusal
	}
	return s.public, nil, nil
}

// wantClosed checks that the public listener is not opened, of which operators are told.
func (s *starting) wantClosed(why string) {
	s.t.Helper()
	synctest.Wait()
	if len(s.opened) > 0 {
		s.t.Errorf("after %v the public listener is open", time.Since(s.began))
	}
	x := gatewaytest.Send(s.t, s.operator, http.MethodGet, "/readyz")
	if text := x.Text(); x.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, why) {
		s.t.Errorf("operators get %d %s, want %q", x.StatusCode, text, why)
	}
}

func (s *starting) wantOpenedAfter(want time.Duration) {
	s.t.Helper()
	if took := <-s.opened; took != want {
		s.t.Errorf("the public listener was opened after %v, want %v", took, want)
	}
	wantListening(s.t, s.public)
}

// A proxy without health checks must not send clients to a replica that has no data yet.
func TestPublicListenerIsOpenedWhenAllIsPrimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startGateway(t, nil, "a", "b")
		s.Prime("a", 1)
		time.Sleep(4 * time.Second)
		s.wantClosed(`"watch":"b"`)
		s.Prime("b", 1)
		s.wantOpenedAfter(4 * time.Second)
	})
}

// A watch that is never primed does not keep the others from their clients.
func TestPublicListenerIsOpenedAfterPrimeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startGateway(t, nil, "a", "never")
		s.Prime("a", 1)
		time.Sleep(5*time.Second - time.Millisecond)
		s.wantClosed(`"watch":"never"`)
		s.wantOpenedAfter(5 * time.Second)
	})
}

// A gateway that is stopped before it opened its public listener never does.
func TestStopBeforeThePublicListenerIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startGateway(t, nil, "never")
		s.wantClosed(`"watch":"never"`)
		s.stop()
		err := <-s.served
		s.served <- err
		if err != nil || len(s.opened) > 0 || time.Since(s.began) > 0 {
			t.Errorf("after %v: %v; %d listeners were opened", time.Since(s.began), err, len(s.opened))
		}
		wantNotListening(t, s.private)
	})
}

// If the public listener cannot be opened, Serve ends.
func TestPublicListenerThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := errors.New("address already in use")
		s := startGateway(t, taken)
		err := <-s.served
		s.served <- err
		if !errors.Is(err, taken) || time.Since(s.began) > 0 {
			t.Errorf("after %v Serve returns %v", time.Since(s.began), err)
		}
		wantNotListening(t, s.private)
	})
}
