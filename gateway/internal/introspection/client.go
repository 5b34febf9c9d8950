package introspection

import (
	"cmp"
	"strings"
	"unique"

	"github.com/watchtide/watchtide/access/credential"
)

// Client is what a client says of itself, and who it has proved to be. Streams of the same client
// share one.
type Client struct {
	agent unique.Handle[string] // the zero value: it names none
	Principal
}

// Principal is the principal of a stream, as operators see it. Its texts are cut to principalKept.
// The zero value is that of a client without a credential.
type Principal struct {
	Mechanism string `json:"mechanism"`
	Issuer    string `json:"issuer,omitempty"`
	Name      string `json:"name"`
	ClientID  string `json:"client_id,omitempty"` // see access.Principal.ClientID
}

const (
	// agentKept is how many bytes of a user agent are kept.
	agentKept = 128
	// principalKept is how many bytes of each text of a principal are kept.
	principalKept = 256
)

// The names of groups of clients that have proved nothing.
const (
	anonymous = "anonymous"
	unknown   = "unknown"
)

// clientOf returns the client with a user agent; who is nil if the gateway does not ask for
// credentials. It does not retain the request: the agent is copied, and a principal has texts of its
// own.
func clientOf(agent string, who *credential.Identity) (c Client) {
	if agent = kept(agent, agentKept); agent != "" {
		c.agent = unique.Make(agent)
	}
	if who == nil || who.IsAnonymous() {
		return c
	}
	c.Principal = Principal{
		Mechanism: who.Mechanism, Issuer: kept(who.Issuer, principalKept), Name: kept(who.Name, principalKept),
		ClientID: kept(who.ClientID(), principalKept),
	}
	return c
}

// kept returns the beginning of a text from outside, as UTF-8. It does not retain the rest.
func kept(text string, most int) string {
	if len(text) > most {
		text = strings.Clone(text[:most])
	}
	return strings.ToValidUTF8(text, "")
}

// UserAgent returns what the client calls itself; empty: nothing.
func (c *Client) UserAgent() string {
	if c.agent == (unique.Handle[string]{}) {
		return ""
	}
	return c.agent.Value()
}

// Text returns a text that names the principal among all: ann (https://idp.example.com).
func (p *Principal) Text() string {
	if *p == (Principal{}) {
		return anonymous
	}
	return p.of(p.Name)
}

// ClientText returns a text that names the OAuth client among those of all issuers.
func (p *Principal) ClientText() string {
	if p.ClientID == "" {
		return unknown
	}
	return p.of(p.ClientID)
}

// of returns a name with its issuer. Those of this gateway itself have none.
func (p *Principal) of(name string) string { return name + " (" + cmp.Or(p.Issuer, p.Mechanism) + ")" }

// contains reports whether a text is in a name of the principal, in whatever case.
func (p *Principal) contains(text string) bool {
	return containsFold(p.Name, text) || containsFold(p.ClientID, text) || containsFold(p.Issuer, text)
}
