package access

import (
	"net/netip"
	"strings"
	"time"
)

// AuditDecision is what was decided.
type AuditDecision string

// The decisions. Ended is about a stream that had been allowed.
const (
	Allowed AuditDecision = "allowed"
	Denied  AuditDecision = "denied"
	Ended   AuditDecision = "ended"
)

// Action is what a client wanted to do, or what has ended a stream.
type Action string

// The actions.
const (
	Open        Action = "open"       // a stream, over HTTP or gRPC
	Poll        Action = "poll"       // a long poll
	List        Action = "list"       // the resources of a watch, or their history
	Get         Action = "get"        // one resource
	Describe    Action = "describe"   // a watch itself
	Write       Action = "write"      // one resource
	Delete      Action = "delete"     // one resource
	Login       Action = "login"      // a session for a token
	Logout      Action = "logout"     // the end of a session
	AuditTicket Action = "ticket"     // a ticket for some watches
	Renew       Action = "renew"      // another credential for a stream
	Credential  Action = "credential" // a credential that is not accepted
	Expire      Action = "expire"     // the credential of a stream has expired
	Revoke      Action = "revoke"     // the credential of a stream, or its access, was withdrawn
	Move        Action = "move"       // what the principal of a stream may see has changed, and the stream shows that or ends
	Window      Action = "window"     // another window on an open stream
	Repeated    Action = "repeated"   // denials that were only counted
	Lost        Action = "lost"       // entries that could not be written
)

// AuditEntry is one decision. Empty fields are left out.
type AuditEntry struct {
	Time     time.Time     `json:"time"`
	Decision AuditDecision `json:"decision,omitempty"`
	Action   Action        `json:"action"`
	// Mechanism, Issuer and Name are the principal.
	Mechanism string `json:"mechanism,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
	Name      string `json:"name,omitempty"`
	// Via says where the credential was: in a ticket, a session and so on.
	Via     string     `json:"via,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
	// Stream is the id of a stream, as in its hello.
	Stream  string   `json:"stream,omitempty"`
	Watch   string   `json:"watch,omitempty"`
	Watches []string `json:"watches,omitempty"`
	// Rules are the rules that allow it: for a read all of them, for a write the first one.
	Rules []AuditRule `json:"rules,omitempty"`
	// View is a hash of the part that is read.
	View string `json:"view,omitempty"`
	// Revision is the revision of the resource that was written or deleted.
	Revision uint64 `json:"revision,omitempty"`
	// Status is the status of the answer, as over HTTP, if the decision determines it.
	Status int `json:"status,omitempty"`
	// Reason is a word or a sentence of the gateway. It quotes nothing from clients.
	Reason string `json:"reason,omitempty"`
	// Count is the number of decisions, or lines, that the entry stands for; 0: one.
	Count uint64 `json:"count,omitempty"`
}

// AuditRule is an entry of "allow".
type AuditRule struct {
	Role string `json:"role"`
	// Number is the place of the rule in the list, from 1.
	Number int `json:"number"`
}

// By returns the entry with its principal; nil: the principal is unknown.
func (e AuditEntry) By(p *Principal) AuditEntry {
	if p != nil {
		e.Mechanism, e.Issuer, e.Name = p.Mechanism, p.Issuer, p.Name
	}
	return e
}

// cheap reports whether the entry has no proven principal. Anybody can cause any number of such
// entries.
func (e AuditEntry) cheap() bool {
	return e.Action == Credential || e.Mechanism == "" || e.Mechanism == Anonymous
}

// longestText is the maximum length in bytes of a text from outside the gateway.
const longestText = 512

// bounded returns the entry with its texts cut to longestText.
func (e AuditEntry) bounded() AuditEntry {
	for _, text := range []*string{&e.Issuer, &e.Name, &e.Stream, &e.Watch, &e.Reason} {
		if len(*text) > longestText {
			*text = strings.ToValidUTF8((*text)[:longestText], "") + "…"
		}
	}
	return e
}
