package gateway

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/jwt"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

func TestHealthz(t *testing.T) {
	r := newAPIRig(t, Config{Version: "1.2.3"})
	everybody := func() (int, string) {
		w := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		return w.Code, w.Body.String()
	}
	if code, text := everybody(); code != 200 || text != "ok\n" {
		t.Errorf("everybody gets %d %q", code, text)
	}
	r.gateway.admission.Drain()
	if code, _ := everybody(); code != 200 {
		t.Errorf("a draining process is alive, and says %d", code)
	}
}

// TestHealthzTellsOperatorsWhichProcessItIs: version, start and uptime are not for everybody.
func TestHealthzTellsOperatorsWhichProcessItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now().UTC().Format(time.RFC3339)
		r := newRig(t, Config{Version: "1.2.3"})
		time.Sleep(90 * time.Second)
		if got, want := r.get("/healthz").Text(), "ok\nversion: 1.2.3\ninstance: test\nstarted: "+started+"\nuptime: 1m30s\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// unready is the body of a /readyz that fails.
type unready struct {
	Status   int
	Detail   string
	Draining bool
	Watches  []struct{ Watch, State, Since, Reason string }
}

// wantReadiness checks that exactly these watches are named; none: ready.
func wantReadiness(t *testing.T, r *rig, draining bool, watches ...string) {
	t.Helper()
	synctest.Wait()
	x := r.get("/readyz")
	text := x.Text()
	if ready := !draining && len(watches) == 0; ready {
		if x.StatusCode != 200 || text != "ready\n" {
			t.Errorf("%d %s, want ready", x.StatusCode, text)
		}
		return
	}
	var got unready
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var names []string
	for _, w := range got.Watches {
		names = append(names, w.Watch+" "+w.State)
		if !strings.Contains(got.Detail, w.Watch) || w.Since == "" {
			t.Errorf("detail %q, watch %+v", got.Detail, w)
		}
	}
	if x.StatusCode != 503 || x.Header.Get("Retry-After") == "" || got.Draining != draining || strings.Join(names, ",") != strings.Join(watches, ",") {
		t.Errorf("%d %s, want %v", x.StatusCode, text, watches)
	}
}

// TestReadyzOfRequired checks that a required watch counts while it is not fresh.
func TestReadyzOfRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{StaleAllowed: time.Minute}}, "services")
		r.Add(watch.Config{Name: "nodes", Required: true})
		r.Add(watch.Config{Name: "lazy", OnDemand: true}) // does not count
		wantReadiness(t, r, false, "nodes priming", "services priming")
		r.Prime("nodes", 1)
		wantReadiness(t, r, false, "services priming")
		r.Prime("services", 1)
		wantReadiness(t, r, false)

		r.status("nodes", stream.Stale, "upstream is lost")
		wantReadiness(t, r, false)
		time.Sleep(time.Minute)
		wantReadiness(t, r, false)
		time.Sleep(time.Millisecond)
		wantReadiness(t, r, false, "nodes stale")
		// Resyncing is not yet in sync.
		r.status("nodes", stream.Resyncing, "upstream is loading")
		wantReadiness(t, r, false, "nodes resyncing")
		r.status("nodes", stream.InSync, "")
		wantReadiness(t, r, false)

		r.gateway.admission.Drain()
		wantReadiness(t, r, true)
	})
}

// TestReadyzOfOneBadWatch checks that a watch that is not required neither takes the
// others out of service when it fails, nor keeps them out forever if it cannot be
// primed.
func TestReadyzOfOneBadWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{StaleAllowed: time.Minute}}, "files", "never")
		r.Add(watch.Config{Name: "nodes", Required: true})
		r.Prime("files", 1)
		r.Prime("nodes", 1)
		wantReadiness(t, r, false, "never priming")
		time.Sleep(time.Minute + time.Millisecond)
		wantReadiness(t, r, false)
		r.status("files", stream.Stale, "a.yaml: a second document begins here")
		time.Sleep(time.Hour)
		wantReadiness(t, r, false)
	})
}

// TestReadyzOfRequiredThatIsNeverPrimed checks that it is waited for indefinitely.
func TestReadyzOfRequiredThatIsNeverPrimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{StreamSettings: StreamSettings{StaleAllowed: time.Minute}})
		r.Add(watch.Config{Name: "nodes", Required: true})
		time.Sleep(time.Hour)
		wantReadiness(t, r, false, "nodes priming")
	})
}

// TestReadyzOfNothing checks that a gateway without watches is ready.
func TestReadyzOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wantReadiness(t, newRig(t, Config{}), false)
	})
}

// TestReadyzSaysThatItDrains: to everybody, unlike the names of watches.
func TestReadyzSaysThatItDrains(t *testing.T) {
	r := newAPIRig(t, Config{})
	answer := func() (int, string) {
		w := httptest.NewRecorder()
		r.gateway.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		return w.Code, w.Body.String()
	}
	if code, body := answer(); code != 503 || strings.Contains(body, "draining") || strings.Contains(body, "silent") {
		t.Errorf("with a watch that is not primed: %d %s", code, body)
	}
	r.gateway.leaving.Store(true)
	if code, body := answer(); code != 503 || !strings.Contains(body, "draining") || strings.Contains(body, "silent") {
		t.Errorf("draining: %d %s", code, body)
	}
}

// TestReadyTellsOfCredentialsThatCannotBeChecked: a provider that is down at start is no
// reason to send traffic elsewhere, and operators are told.
func TestReadyTellsOfCredentialsThatCannotBeChecked(t *testing.T) {
	const issuer = "https://idp.example.invalid"
	r := newAPIRig(t, Config{Access: &Access{Policy: access.EmptyPolicy(), Credentials: credential.Config{
		Issuers: []jwt.Issuer{{URL: issuer, Audience: "watchtide", Algorithms: []string{"ES256"}}},
	}}})
	r.registry.Remove("silent") // which is never ready
	if got := r.get("/readyz"); got.StatusCode != 200 || !strings.HasPrefix(got.text, "ready\nissuer "+issuer+": its keys are not known") {
		t.Errorf("operators get %d: %s", got.StatusCode, got.text)
	}
	public := httptest.NewRecorder()
	r.gateway.Handler().ServeHTTP(public, httptest.NewRequest("GET", "/readyz", nil))
	if got := public.Body.String(); got != "ready\n" {
		t.Errorf("everybody gets %q", got)
	}
}
