package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// tokens returns one token after the other, and the last one again and again.
func tokens(all ...string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		token := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return token, nil
	}
}

// authorizations returns what each request sent.
func (s *script) authorizations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.requests {
		out = append(out, r.Header.Get("Authorization"))
	}
	return out
}

// followAs follows with tokens, in fake time.
func followAs(t *testing.T, s *script, token func(context.Context) (string, error)) (*recorder, error) {
	t.Helper()
	server, stop := serve(t, s.ServeHTTP)
	defer stop()
	server.options.Token = token
	rec := &recorder{}
	return rec, rec.record(server.Watch(t.Context(), "w"))
}

// refusesToken refuses and repeats the token, as no server should.
func refusesToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprintf(w, `{"title":"Unauthorized","detail":"wrong: %s"}`, r.Header.Get("Authorization"))
}

// A token that ends ends the stream. The next one goes on where that ended.
func TestWatchResumesWithTheNextToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{
			replies(hello + reset + upsert("a", 1, true) + goodbye("token_expired", 3000)),
			replies(hello + upsert("b", 2, true) + allGone),
		}}
		rec, err := followAs(t, s, tokens("tOkEn1", "tOkEn2"))
		if want := []string{"Bearer tOkEn1", "Bearer tOkEn2"}; err != nil || !slices.Equal(s.authorizations(), want) {
			t.Errorf("got %v and %q, want %q", err, s.authorizations(), want)
		}
		if want := []string{"", "w@e-1"}; !slices.Equal(s.resumeIDs(), want) || !slices.Equal(rec.waits, []int64{3000}) {
			t.Errorf("resumed from %q after %v ms, want %q after 3,000", s.resumeIDs(), rec.waits, want)
		}
	})
}

// A refusal of a token is final if there is no other one, at once and by its type.
func TestWatchEndsIfTheTokenIsRefused(t *testing.T) {
	for status, want := range map[int]error{401: ErrUnauthenticated, 403: ErrForbidden} {
		for name, token := range map[string]func(context.Context) (string, error){
			"without tokens": nil, "with one": tokens("tOkEn1"),
			"with one that is gone": func(ctx context.Context) (string, error) { return "", nil },
		} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, began := &script{turns: []turn{refuses(status)}}, time.Now()
					rec, err := followAs(t, s, token)
					var p *Problem
					if !errors.Is(err, want) || !errors.As(err, &p) || p.Status != status || len(rec.lost) > 0 || time.Since(began) > 0 {
						t.Errorf("got %v after %q and %v", err, rec.lost, time.Since(began))
					}
					if errors.Is(err, ErrUnauthenticated) && errors.Is(err, ErrForbidden) {
						t.Error("the error is both")
					}
				})
			})
		}
	}
}

// If there is another token, it is tried, but not faster than after any other failure.
func TestWatchGoesOnIfThereIsAnotherToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{refuses(401), refuses(403), replies(hello + upsert("a", 1, true) + allGone)}}
		rec, err := followAs(t, s, tokens("one", "two", "two", "three", "three"))
		if want := []string{"Bearer one", "Bearer two", "Bearer three"}; err != nil || !slices.Equal(s.authorizations(), want) {
			t.Errorf("got %v and %q, want %q", err, s.authorizations(), want)
		}
		if len(rec.waits) != 2 || rec.waits[0] == 0 || rec.waits[1] == 0 {
			t.Errorf("waited %v ms", rec.waits)
		}
	})
}

// A token that cannot be had now may be had later. Nothing is sent until then.
func TestWatchWaitsForAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{turns: []turn{replies(hello + allGone)}}
		calls := 0
		rec, err := followAs(t, s, func(context.Context) (string, error) {
			switch calls++; calls {
			case 1:
				return "", errors.New("the provider is down")
			case 2:
				return "sEcReT 2\r\nX: y", nil
			}
			return "three", nil
		})
		if want := []string{"Bearer three"}; err != nil || !slices.Equal(s.authorizations(), want) {
			t.Errorf("got %v and %q, want %q", err, s.authorizations(), want)
		}
		if len(rec.lost) != 2 || !strings.Contains(rec.lost[0], "the provider is down") || !strings.Contains(rec.lost[1], "want one line") || strings.Contains(rec.lost[1], "sEcReT") {
			t.Errorf("lost: %q", rec.lost)
		}
	})
}

func TestWatchEndsWhileItWaitsForAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, stop := serve(t, (&script{}).ServeHTTP)
		defer stop()
		server.options.Token = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		over := errors.New("over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, over)
		defer cancel()
		if err := new(recorder).record(server.Watch(ctx, "w")); err != over {
			t.Errorf("got %v", err)
		}
	})
}

// Every request has the token, and no error has.
func TestEveryRequestHasTheToken(t *testing.T) {
	s := &script{turns: slices.Repeat([]turn{refusesToken}, 6)}
	server, stop := serve(t, s.ServeHTTP)
	defer stop()
	server.options.Token = tokens("tOkEn1")
	_, err1 := server.Watches(t.Context())
	_, err2 := server.Get(t.Context(), "w", "k", View{})
	_, err3 := server.Snapshot(t.Context(), "w", View{})
	err4 := new(recorder).record(server.Watch(t.Context(), "w"))
	_, err5 := server.Put(t.Context(), "w", "k", []byte("1"), Condition{})
	_, err6 := server.Delete(t.Context(), "w", "k", Condition{})
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if !errors.Is(err, ErrUnauthenticated) || strings.Contains(err.Error(), "tOkEn1") || !strings.Contains(err.Error(), "wrong: Bearer [hidden]") {
			t.Errorf("%d: got %v", i, err)
		}
	}
	if want := slices.Repeat([]string{"Bearer tOkEn1"}, 6); !slices.Equal(s.authorizations(), want) {
		t.Errorf("got %q", s.authorizations())
	}
}

// A redirect takes the token along only within the origin of the server: not to another
// host, port or scheme.
func TestTokenStaysAtItsOrigin(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked for %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	var to string
	var asked []string
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/moved") {
			asked = append(asked, r.Header.Get("Authorization"))
			write(w, hello+allGone)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	defer gateway.Close()
	server, err := New(gateway.URL, Options{Token: tokens("tOkEn1")})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.transport.(*http.Transport).TLSClientConfig = gateway.Client().Transport.(*http.Transport).TLSClientConfig

	for _, to = range []string{thief.URL, strings.Replace(gateway.URL, "https:", "http:", 1), strings.Replace(gateway.URL, "127.0.0.1", "a.127.0.0.1", 1)} {
		_, err := server.Watches(t.Context())
		if err == nil || !strings.Contains(err.Error(), "must not get the credential") {
			t.Errorf("a redirect to %s: got %v", to, err)
		}
	}
	to = "/moved"
	if err := new(recorder).record(server.Watch(t.Context(), "w")); err != nil || !slices.Equal(asked, []string{"Bearer tOkEn1"}) {
		t.Errorf("within the origin: got %v, and %q", err, asked)
	}
}

func TestRedirectsWithATokenAreCounted(t *testing.T) {
	server, stop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	})
	defer stop()
	server.options.Token = tokens("tOkEn1")
	if _, err := server.Watches(t.Context()); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("got %v", err)
	}
}

func TestCanBeToken(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a": true, "aB9-._~+/=": true, "a b": false, "a\n": false, "é": false, "\x7f": false, "\x00": false, "Bearer x": false,
	} {
		if CanBeToken(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
