package credential

import (
	"time"

	"github.com/watchtide/watchtide/access"
)

const (
	// ticketParameter is the query parameter that carries a ticket.
	ticketParameter = "ticket"
	// maxTicket is the maximum length of a ticket, in bytes: servers and proxies accept lines
	// of 8 KiB.
	maxTicket = 6 << 10
)

// NewTicket returns a ticket for some watches, and when it expires. It is for clients that can
// send neither headers nor cookies. Anybody who sees it can use it until it expires. A stream
// that it opens ends with the credential behind it, not with the ticket. The error is a
// *access.Refusal.
func (a *Authenticator) NewTicket(id *Identity, watches []string) (text string, expires time.Time, err error) {
	switch {
	case id.IsAnonymous():
		return "", expires, access.NewRefusal(access.CredentialRequired, "a ticket is made of another credential: send one")
	case id.Via == ViaTicket:
		return "", expires, access.NewRefusal(access.CredentialNotUsable, "a ticket is not made of another ticket: send the credential behind it")
	case len(watches) == 0:
		return "", expires, access.NewRefusal(access.CredentialNotUsable, "a ticket is for some watches: name at least one")
	}
	expires = time.Now().Add(a.cfg.TicketTTL)
	if !id.Expires.IsZero() && id.Expires.Before(expires) {
		expires = id.Expires
	}
	expires = time.UnixMilli(expires.UnixMilli())
	s := id.contents()
	s.Watches, s.Until = watches, millis(expires)
	text, err = a.seal(access.Ticket, s, maxTicket)
	return text, expires, err
}

func (a *Authenticator) openTicket(text string) (*Identity, error) {
	s, err := a.open(access.Ticket, text, maxTicket)
	if err != nil {
		return nil, err
	}
	return a.identity(s)
}
