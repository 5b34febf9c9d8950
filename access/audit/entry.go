package audit

import (
	"net/netip"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access/principal"
)

// Decision is what was decided.
type Decision string

// The decisions. Ended is about a stream that had been let in.
const (
	Allowed Decision = "allowed"
	Denied  Decision = "denied"
	Ended   Decision = "ended"
)

// Action is what somebody wanted to do, or what has ended a stream.
type Action string

// The actions.
const (
	Open       Action = "open"       // a stream, over HTTP or gRPC
	Poll       Action = "poll"       // a long poll
	List       Action = "list"       // the resources of a watch
	Get        Action = "get"        // one resource
	Describe   Action = "describe"   // a watch itself
	Write      Action = "write"      // one resource
	Delete     Action = "delete"     // one resource
	Login      Action = "login"      // a session for a token
	Logout     Action = "logout"     // the end of a session
	Ticket     Action = "ticket"     // a ticket for some watches
	Renew      Action = "renew"      // another credential for a stream
	Credential Action = "credential" // a credential that is not accepted
	Expire     Action = "expire"     // the credential of a stream has ended
	Revoke     Action = "revoke"     // the credential of a stream, or its access, was withdrawn
	Move       Action = "move"       // a stream shows something else from now on, or ends since it cannot
	Repeated   Action = "repeated"   // further denials, which were only counted
	Lost       Action = "lost"       // entries that could not be written
)

// Entry is one decision. What is empty is left out.
type Entry struct {
	Time     time.Time `json:"time"`
	Decision Decision  `json:"decision,omitempty"`
	Action   Action    `json:"action"`
	// Mechanism, Issuer and Name are the principal.
	Mechanism string `json:"mechanism,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
	Name      string `json:"name,omitempty"`
	// Via is where the credential was: in a ticket, a session and so on.
	Via     string     `json:"via,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
	// Stream is the id of a stream, as in its hello.
	Stream  string   `json:"stream,omitempty"`
	Watch   string   `json:"watch,omitempty"`
	Watches []string `json:"watches,omitempty"`
	// Rules are those that let it in. Of a read they unite, and of a write the first one
	// counts.
	Rules []Rule `json:"rules,omitempty"`
	// View is the hash of what may be read.
	View string `json:"view,omitempty"`
	// Revision is that of a resource that was written.
	Revision uint64 `json:"revision,omitempty"`
	// Status is that of the answer, as over HTTP, where the decision determines it.
	Status int `json:"status,omitempty"`
	// Reason is a word or a sentence of the gateway's own.
	Reason string `json:"reason,omitempty"`
	// Count is how many decisions, or lines, an entry stands for, if it is no single one.
	Count uint64 `json:"count,omitempty"`
}

// Rule is an entry of "allow".
type Rule struct {
	Role string `json:"role"`
	// Number is its place in the list, from 1.
	Number int `json:"number"`
}

// By returns an entry about a principal; nil: it is not known who it is.
func (e Entry) By(p *principal.Principal) Entry {
	if p != nil {
		e.Mechanism, e.Issuer, e.Name = p.Mechanism, p.Issuer, p.Name
	}
	return e
}

// cheap reports whether nobody has proved who they are: whoever has an address can make as
// many such entries as they like.
func (e Entry) cheap() bool {
	return e.Action == Credential || e.Mechanism == "" || e.Mechanism == principal.Anonymous
}

// longestText is the most bytes of a text that somebody else has chosen.
const longestText = 512

// bounded returns the entry with no text longer than longestText.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Issuer, &e.Name, &e.Stream, &e.Watch, &e.Reason} {
		if len(*text) > longestText {
			*text = strings.ToValidUTF8((*text)[:longestText], "") + "…"
		}
	}
	return e
}
