package gateway

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/internal/accesstest"
	"github.com/watchtide/watchtide/internal/jwt"
)

// guard makes the access of gateways, and credentials that they accept.
type guard struct {
	t        *testing.T
	provider *accesstest.Provider
	lines    map[string]string // of the tokens file, by name
	tokens   map[string]string // static tokens, by name
}

func newGuard(t *testing.T) *guard {
	t.Helper()
	return &guard{t: t, provider: accesstest.NewProvider(t), lines: map[string]string{}, tokens: map[string]string{}}
}

// static makes a static token, or makes an existing one a member of other groups.
func (g *guard) static(name string, groups ...string) {
	g.t.Helper()
	if line, there := g.lines[name]; there {
		fields := strings.Fields(line)
		g.lines[name] = strings.Join([]string{fields[0], fields[1], strings.Join(groups, ",")}, " ")
		return
	}
	text, line, err := access.NewToken(name, groups)
	if err != nil {
		g.t.Fatal(err)
	}
	g.tokens[name], g.lines[name] = text, line
}

// as returns the header with which a static token is sent.
func (g *guard) as(name string) string { return "Authorization: Bearer " + g.tokens[name] }

// asJWT returns the header with which a token of the provider is sent that lasts so long.
func (g *guard) asJWT(name string, lasts time.Duration, groups ...string) string {
	g.t.Helper()
	return bearer(g.provider.Token(g.t, map[string]any{"sub": name, "groups": groups, "exp": time.Now().Add(lasts).Unix()}))
}

// access returns an access in which all members of the group staff may read all of a watch,
// each with the rule that is given for the watch; "" means none.
func (g *guard) access(reads map[string]string) *Access {
	g.t.Helper()
	rules := map[string]access.Rule{}
	for name, read := range reads {
		rules[name] = access.Rule{Read: read}
	}
	return g.accessBy(rules)
}

// accessBy is access with whole rules.
func (g *guard) accessBy(of map[string]access.Rule) *Access {
	g.t.Helper()
	c := access.PolicyConfig{Roles: []access.Role{{Name: "staff", When: `"staff" in principal.groups`}}}
	for name, rule := range of {
		w := access.WatchRules{Name: name}
		if rule.Role = "staff"; rule.Read != "" {
			w.Rules = []access.Rule{rule}
		}
		c.Watches = append(c.Watches, w)
	}
	rules, err := access.CompilePolicy(c)
	if err != nil {
		g.t.Fatal(err)
	}
	var lines []string
	for _, line := range g.lines {
		lines = append(lines, line)
	}
	table, err := access.ParseTokens([]byte(strings.Join(lines, "\n")))
	if err != nil {
		g.t.Fatal(err)
	}
	return &Access{Policy: rules, Credentials: credential.Config{
		Tokens:         table,
		Issuers:        []jwt.Issuer{g.provider.Issuer()},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")},
	}}
}

// wholeWatches lets staff read all of the watches.
func wholeWatches(names ...string) map[string]string {
	reads := map[string]string{}
	for _, name := range names {
		reads[name] = "true"
	}
	return reads
}

// newStaffRig returns a rig of primed watches, all of which staff may read.
func newStaffRig(t *testing.T, g *guard, names ...string) *rig {
	t.Helper()
	r := newRig(t, Config{Access: g.access(wholeWatches(names...))}, names...)
	for _, name := range names {
		r.Prime(name, 1)
	}
	return r
}

// newRevocableRig is newStaffRig for the watch a, and with a watch of revocations, which the
// gateway follows when it returns.
func newRevocableRig(t *testing.T, g *guard) *rig {
	t.Helper()
	a := g.access(wholeWatches("a"))
	a.Revoked = "revocations"
	r := newRig(t, Config{Access: a}, "a", "revocations")
	r.Prime("a", 1)
	r.Prime("revocations", 1)
	synctest.Wait()
	return r
}

// openBlocked primes the watch a with a large resource, and opens a stream of it whose client
// reads nothing but the first line.
func (r *rig) openBlocked(header string) {
	r.t.Helper()
	r.Prime("a", 1, gatewaytest.Resource("k", 1, `"`+strings.Repeat("x", 1<<20)+`"`))
	c := r.dial("GET /v1/events?watch=a HTTP/1.1\r\nHost: gateway\r\n" + header + "\r\n\r\n")
	if _, err := c.Reader.ReadString('\n'); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// positionOf returns the position in the answer to a long poll.
func positionOf(t *testing.T, x *gatewaytest.Exchange) string {
	t.Helper()
	var answer struct{ Position string }
	if err := json.Unmarshal([]byte(x.Text()), &answer); err != nil || answer.Position == "" {
		t.Fatalf("no position in %q: %v", x.Text(), err)
	}
	return answer.Position
}

var streamID = regexp.MustCompile(`"stream":"([A-Z0-9]+)"`)

func idOf(t *testing.T, x *gatewaytest.Exchange) string {
	t.Helper()
	found := streamID.FindStringSubmatch(x.Text())
	if found == nil {
		t.Fatalf("hello names no stream: %q", x.Text())
	}
	return found[1]
}

// wantEnd checks that a stream has ended cleanly, with a goodbye of the reason as the last
// event.
func wantEnd(t *testing.T, x *gatewaytest.Exchange, reason string) {
	t.Helper()
	over, err := x.Over()
	if text := x.Text(); !over || err != nil || strings.Count(text, "event: goodbye") != 1 || !strings.Contains(text, `"reason":"`+reason+`"`) {
		t.Errorf("over %t, error %v, want a goodbye (%s): %q", over, err, reason, text)
	}
}

func wantOpen(t *testing.T, x *gatewaytest.Exchange) {
	t.Helper()
	if over, err := x.Over(); over {
		t.Errorf("the stream has ended, error %v: %q", err, x.Text())
	}
}

// wantNoAuthorizations checks that nothing is left of streams that have ended.
func wantNoAuthorizations(t *testing.T, g *Gateway) {
	t.Helper()
	synctest.Wait()
	if n := g.authorizations.Count(); n != 0 {
		t.Errorf("%d passes are left", n)
	}
}
