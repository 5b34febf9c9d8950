//go:build servers

package provider

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/jwt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runAsChild()
	goleak.VerifyTestMain(m)
}

// idp is the provider, as a process.
type idp struct {
	t       *testing.T
	address string
	child   *exec.Cmd
	client  *http.Client
}

func startProvider(t *testing.T) *idp {
	t.Helper()
	p := &idp{t: t, address: "127.0.0.1:0", client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	p.start()
	t.Cleanup(p.stop)
	return p
}

// start starts the process, at the address that it had before.
func (p *idp) start() {
	p.t.Helper()
	p.child = exec.Command(os.Args[0])
	p.child.Env = append(os.Environ(), addressVariable+"="+p.address)
	p.child.Stderr = os.Stderr
	if _, err := p.child.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.child.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.child.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the provider does not start: %v", err)
	}
	p.address = strings.TrimSpace(line)
}

func (p *idp) stop() {
	_ = p.child.Process.Kill()
	_ = p.child.Wait()
}

func (p *idp) issuer() string { return "http://" + p.address + "/" }

func (p *idp) control(what string) string {
	p.t.Helper()
	answer, err := p.client.Get(p.issuer() + "control/" + what)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v", what, answer.Status, err)
	}
	return string(text)
}

// token asks the provider for a token for an audience.
func (p *idp) token(audience string) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {audience}}
	r, err := http.NewRequest(http.MethodPost, p.issuer()+"oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("sid1", "verysecret")
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	var body struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || body.Token == "" {
		p.t.Fatalf("no token: %s, %v", answer.Status, err)
	}
	return body.Token
}

// gateway returns an authenticator that accepts the provider, and keeps its keys up to
// date until the test ends.
func (p *idp) gateway() *credential.Authenticator {
	p.t.Helper()
	a, err := credential.New(credential.Config{Issuers: []jwt.Issuer{{
		URL: p.issuer(), Audience: "watchtide", Algorithms: []string{"RS256"}, Groups: "realm_access.roles",
	}}})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	p.t.Cleanup(func() { cancel(); running.Wait() })
	return a
}

// reason returns why a token is refused; empty: it is not.
func reason(t *testing.T, a *credential.Authenticator, token string) (access.Reason, time.Duration) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/watches", http.NoBody)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Authorization", "Bearer "+token)
	id, err := a.Identify(r)
	if err == nil {
		if id.Name != "sid1" || fmt.Sprint(id.Groups) != "[staff]" {
			t.Errorf("got %+v", id)
		}
		return "", 0
	}
	var e *access.Refusal
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	return e.Reason, e.RetryAfter
}

func want(t *testing.T, a *credential.Authenticator, token string, want access.Reason) {
	t.Helper()
	if got, _ := reason(t, a, token); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// insist comes back as often as it is told to, as a client does.
func insist(t *testing.T, a *credential.Authenticator, token string) access.Reason {
	t.Helper()
	for {
		got, after := reason(t, a, token)
		if after == 0 {
			return got
		}
		<-time.After(after)
	}
}

func TestTokensOfTheProvider(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	a, other := p.gateway(), startProvider(t)
	token := p.token("watchtide")
	want(t, a, token, "")
	want(t, a, token, "") // from the cache
	want(t, a, p.token("another"), access.InvalidToken)
	want(t, a, other.token("watchtide"), access.UnknownIssuer)
	want(t, a, token[:len(token)-4]+"AAAA", access.InvalidToken)
	if err := a.Ready(); err != nil {
		t.Error(err)
	}
}

// TestKeysOfTheProviderRotate: the token with the new key is accepted at once, the
// remembered one as long as its key is not retired.
func TestKeysOfTheProviderRotate(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	a := p.gateway()
	before := p.token("watchtide")
	want(t, a, before, "")
	p.control("rotate")
	after := p.token("watchtide")
	want(t, a, after, "")
	want(t, a, before, "")
	if testing.Short() {
		return
	}
	p.control("retire")
	if got := insist(t, a, p.token("watchtide")); got != "" {
		t.Errorf("a token with the third key: %s", got)
	}
	for _, retired := range []string{before, after} {
		if got := insist(t, a, retired); got != access.UnknownKey {
			t.Errorf("a token with a retired key: %q", got)
		}
	}
}

// TestProviderThatIsDown at start, and later.
func TestProviderThatIsDown(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	token := p.token("watchtide")
	p.stop()
	a := p.gateway()
	want(t, a, token, access.KeySetUnavailable)
	if a.Ready() == nil {
		t.Error("ready without keys")
	}
	if testing.Short() {
		return
	}
	p.start() // with other keys
	fresh := p.token("watchtide")
	if got := insist(t, a, fresh); got != "" || a.Ready() != nil {
		t.Errorf("after it is there: %q, ready: %v", got, a.Ready())
	}
	p.stop()
	want(t, a, fresh, "")
	want(t, a, token, access.KeySetUnavailable)
}

// TestProviderThatMisbehaves keeps the keys that are known working, and the gateway in
// its limits.
func TestProviderThatMisbehaves(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"redirect", "huge", "trickle"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			if how == "trickle" && testing.Short() {
				t.Skip("takes as long as a provider may")
			}
			p := startProvider(t)
			a := p.gateway()
			known := p.token("watchtide")
			want(t, a, known, "")
			p.control("rotate")
			p.control(how)
			unknown, before := p.token("watchtide"), p.control("asked")
			want(t, a, unknown, access.KeySetUnavailable)
			for range 100 {
				want(t, a, unknown, access.KeySetUnavailable)
				want(t, a, known, "")
			}
			if asked := p.control("asked"); asked != fmt.Sprint(number(t, before)+1) {
				t.Errorf("the provider was asked %s times, and %s times before", asked, before)
			}
		})
	}
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
