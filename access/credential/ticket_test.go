package credential

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestWithoutTicket checks that nothing of a ticket is left, and all else is.
func TestWithoutTicket(t *testing.T) {
	for query, want := range map[string]string{
		"ticket=s3cret":                       "",
		"a=1&ticket=s3cret&b=%20":             "a=1&b=%20",
		"%74icket=s3cret&ticket=s3cret":       "",
		"ticket=s3cret%zz&a":                  "a",
		"ticket=s3cret;x=s3cret&a=1":          "a=1",
		"tickets=1&Ticket=2&x=ticket&%zz=1&&": "tickets=1&Ticket=2&x=ticket&%zz=1&&",
	} {
		r := newRequest("/v1/events?" + query)
		out := WithoutTicket(r)
		if out.URL.RawQuery != want || strings.Contains(out.RequestURI+out.URL.String(), "s3cret") {
			t.Errorf("%s: %q, %q", query, out.URL.RawQuery, out.RequestURI)
		}
		if r.URL.RawQuery != query {
			t.Errorf("%s: the request itself has become %q", query, r.URL.RawQuery)
		}
	}
}

// FuzzTickets checks that a query without its tickets is the same query, and that its
// tickets are those that net/url finds, or are not encoded as they should be.
func FuzzTickets(f *testing.F) {
	f.Add("a=1&ticket=x&%74icket=y;z&b=%zz")
	f.Fuzz(func(t *testing.T, query string) {
		tickets, rest := cutTickets(query)
		if again, _ := cutTickets(rest); len(again) != 0 {
			t.Fatalf("%q: %q has tickets", query, rest)
		}
		before, _ := url.ParseQuery(query)
		after, _ := url.ParseQuery(rest)
		for _, ticket := range before[ticketParameter] {
			if !slices.Contains(tickets, ticket) {
				t.Fatalf("%q: %q is not found", query, ticket)
			}
		}
		delete(before, ticketParameter)
		if before.Encode() != after.Encode() {
			t.Fatalf("%q: %q is left", query, rest)
		}
	})
}

// TestIsOfOurPage checks who may use cookies.
func TestIsOfOurPage(t *testing.T) {
	a := newAuthenticator(t, Config{AllowedOrigins: []string{"https://app.example.com"}})
	for header, want := range map[string]bool{
		"": true, "Origin http://example.com": true, "Origin https://app.example.com": true,
		"Origin https://example.com": false, "Origin null": false, "Sec-Fetch-Site cross-site": false, "Sec-Fetch-Site same-origin": true,
	} {
		r := httptest.NewRequest("DELETE", "/v1/session", nil)
		r.RemoteAddr = "127.0.0.1:1"
		if name, value, ok := strings.Cut(header, " "); ok {
			r.Header.Set(name, value)
		}
		if got := a.IsOfOurPage(r); got != want {
			t.Errorf("%q: %t", header, got)
		}
	}
}
