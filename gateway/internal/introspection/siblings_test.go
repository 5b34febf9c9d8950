package introspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// names is a Resolver that knows one name.
type names struct{ addresses []netip.Addr }

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host != "siblings" {
		return nil, errors.New("no such host")
	}
	return n.addresses, nil
}

// serve starts a server, and returns its origin.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// asked returns what the others say.
func asked(t *testing.T, s *Siblings) (all []Sibling) {
	t.Helper()
	if err := json.Unmarshal(s.Ask(t.Context()), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// says answers with JSON.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

const sane = `{"instance":"b","version":"1.2.3","started":"2026-11-25T10:00:00Z","ready":true,"reasons":[],"limits":[],"watches":[{"name":"w","epoch":"e","revision":"18446744073709551615","state":"in_sync","since":"2026-11-25T10:00:00Z"}]}`

// TestAsk: a sane replica is shown, and each that is not is an error that says why, whatever it
// does. None of them keeps the others from being shown.
func TestAsk(t *testing.T) {
	reached := atomic.Bool{}
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	hang := make(chan struct{})
	defer close(hang)
	want := map[string]string{ // by address: what is in the error
		serve(t, says(sane)):             "",
		"http://" + down.Addr().String(): "connection refused",
		serve(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}): "no answer within 2s",
		serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }): "a redirect, which is not followed",
		serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }):           "want a token",
		serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }):               "404",
		serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }):                          "not JSON",
		serve(t, says(`{"instance":`)):                                                      "no instance",
		serve(t, says(`{"instance":7}`)):                                                    "no instance",
		serve(t, says(`{}`)):                                                                "not an instance",
		serve(t, says(`{"instance":"`+strings.Repeat("x", 3000)+`"}`)):                      "too long",
		serve(t, says(`{"instance":"x","reasons":[`+strings.Repeat(`"a",`, 2000)+`"a"]}`)):  "not an instance",
		serve(t, says(`{"instance":"x","watches":[`+strings.Repeat(`{},`, 300_000)+`{}]}`)): "too many elements",
		serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}): "more than 3145728 bytes",
	}
	var addresses []string
	for address := range want {
		addresses = append(addresses, address)
	}
	began := time.Now()
	for _, s := range asked(t, NewSiblings("a", addresses, SiblingAccess{}, names{})) {
		if reason := want[s.Address]; reason == "" && (s.Instance == nil || s.Error != "" || s.Instance.Watches[0].Revision != 1<<64-1) || reason != "" && (s.Instance != nil || !strings.Contains(s.Error, reason)) {
			t.Errorf("want %q: %q %+v", reason, s.Error, s.Instance)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}

// TestAskIsShared: many who ask at once cause one request.
func TestAskIsShared(t *testing.T) {
	var requests atomic.Int64
	s := NewSiblings("a", []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
			t.Error("a credential was sent")
		}
		requests.Add(1)
		says(sane)(w, r)
	})}, SiblingAccess{}, names{})
	lists := map[*byte]bool{}
	for range 100 {
		lists[&s.Ask(t.Context())[0]] = true
	}
	if n := requests.Load(); n > 5 || len(lists) != int(n) {
		t.Errorf("asked %d times, and there are %d lists", n, len(lists))
	}
}

// TestNames: a name stands for all of its addresses, at most for as many as are asked.
func TestNames(t *testing.T) {
	address := serve(t, says(sane))
	port := address[strings.LastIndexByte(address, ':'):]
	here := netip.MustParseAddr("127.0.0.1")
	all := asked(t, NewSiblings("a", []string{byName + "http://siblings" + port, byName + "http://nowhere" + port}, SiblingAccess{}, names{[]netip.Addr{here, here}}))
	if len(all) != 2 || all[0].Instance == nil || !strings.Contains(all[1].Error, "cannot be resolved") {
		t.Errorf("%+v", all)
	}
	var many []netip.Addr
	for i := range 100 {
		many = append(many, netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}))
	}
	if all := asked(t, NewSiblings("a", []string{byName + "http://siblings:1"}, SiblingAccess{}, names{many})); len(all) != MaxReplicas {
		t.Errorf("%d are asked", len(all))
	}
}

// TestValidAddress: an address is an origin, and nothing that could say more.
func TestValidAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"http://10.0.0.7:8081": true, "https://[::1]:8081": true, "dns+http://watchtide:8081": true, "dns+https://watchtide:8081": true,
		"http://10.0.0.7": false, "http://10.0.0.7:8081/": false, "http://u:p@a:1": false, "http://a:1?x": false,
		"file:///etc/passwd": false, "dns+https://a": false, "dns+dns+http://a:1": false, "gopher://a:1": false, "": false,
	} {
		if got := ValidAddress(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// FuzzInstance: what is accepted is bounded and can be shown.
func FuzzInstance(f *testing.F) {
	f.Add([]byte(sane))
	f.Add([]byte(`{"instance":"\ud800"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var i Instance
		if json.Unmarshal(body, &i) != nil || i.check() != nil {
			return
		}
		if out, err := json.Marshal(i); err != nil || i.Instance == "" || len(out) == 0 {
			t.Fatalf("%s: %v", body, err)
		}
	})
}

// TestManyWatches: as many watches as are believed fit into an answer, if their names are as long as
// usual.
func TestManyWatches(t *testing.T) {
	i := Instance{Instance: "b", Version: "1.2.3", Started: time.Now()}
	for n := range maxWatches {
		i.Watches = append(i.Watches, SiblingWatch{
			Name: fmt.Sprintf("customers-of-region-%05d", n), Epoch: "7f3c9a1e0b5d4c2f", Revision: 1_000_000_000, State: "in_sync", Since: time.Now().UTC(),
			Memory: &Memory{Used: 100 << 20, Most: 1 << 30, Served: 90 << 20, MostServed: 400 << 20},
		})
	}
	body, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	if s := askOne(t, serve(t, says(string(body))), SiblingAccess{}); s.Error != "" || len(s.Instance.Watches) != maxWatches {
		t.Errorf("%d bytes: %s", len(body), s.Error)
	}
}
