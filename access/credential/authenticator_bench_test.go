package credential

import (
	"fmt"
	"net/http"
	"testing"
)

// BenchmarkIdentify is what a request costs more than without a credential.
func BenchmarkIdentify(b *testing.B) {
	r := newRig(b, nil)
	cookie := r.session(b, withBearer(r.provider.Token(b, nil)))
	for _, c := range []struct {
		name    string
		request *http.Request
	}{
		{"nothing", newRequest("/v1/events")},
		{"token", withBearer(r.ci)},
		{"jwt-seen-before", withBearer(r.provider.Token(b, nil))},
		{"session", withCookie(cookie)},
		{"ticket", newRequest("/?ticket=" + r.ticket(b, withBearer(r.ci), "a"))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Identify(c.request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNewJWT has a token each time that was not seen before. BenchmarkVerify of
// package jwt is what its signature alone costs.
func BenchmarkNewJWT(b *testing.B) {
	r := newRig(b, nil)
	requests := make([]*http.Request, 2_000)
	for i := range requests {
		requests[i] = withBearer(r.provider.Token(b, map[string]any{"jti": fmt.Sprint(i)}))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%len(requests) == 0 {
			b.StopTimer()
			r.Authenticator = newAuthenticator(b, r.cfg)
			b.StartTimer()
		}
		if _, err := r.Identify(requests[i%len(requests)]); err != nil {
			b.Fatal(err)
		}
	}
}
