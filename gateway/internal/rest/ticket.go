package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/problem"
)

const (
	// maxTicketWatches is the maximum number of watches of a ticket.
	maxTicketWatches = 64
	// maxTicketBody is the maximum size of the body of a request for a ticket, in bytes.
	maxTicketBody = 8 << 10
)

// ticketAnswer is a ticket, and when it expires.
type ticketAnswer struct {
	Ticket  string    `json:"ticket"`
	Expires time.Time `json:"expires"`
}

// NewTicket answers with a ticket for the watches that the body names. A watch that the
// principal may not see is answered like one that does not exist.
func (a *API) NewTicket(w http.ResponseWriter, r *http.Request) {
	id := authz.IdentityOf(r.Context())
	if id.IsAnonymous() || id.Via == credential.ViaTicket {
		closeUnread(w, r)
		_, _, err := a.Authenticator.NewTicket(id, nil)
		a.refuse(w, r, access.AuditTicket, err)
		return
	}
	_, p := problem.Query(r)
	watches, p := a.ticketWatches(r, p)
	if p != nil {
		closeUnread(w, r)
		problem.Write(w, p)
		return
	}
	text, expires, err := a.Authenticator.NewTicket(id, watches)
	if err != nil {
		a.refuse(w, r, access.AuditTicket, err)
		return
	}
	a.Service.Lookup.Record(r.Context(), access.AuditEntry{Decision: access.Allowed, Action: access.AuditTicket, Watches: watches, Status: http.StatusOK})
	writeJSON(w, ticketAnswer{text, expires.UTC()})
}

// ticketWatches returns the watches for which a ticket is requested, without duplicates, unless
// there is already a problem.
func (a *API) ticketWatches(r *http.Request, before *problem.Problem) ([]string, *problem.Problem) {
	if before != nil {
		return nil, before
	}
	body, p := a.readJSON(r, maxTicketBody)
	if p != nil {
		return nil, p
	}
	defer body.claim.Release()
	watches, p := parseTicketRequest(body.raw)
	if p != nil {
		return nil, p
	}
	for _, name := range watches {
		if p := a.Service.Lookup.Check(r.Context(), name); p != nil {
			return nil, p
		}
	}
	return watches, nil
}

// parseTicketRequest returns the watches in the body of a request for a ticket, without
// duplicates. The body must be one JSON value.
func parseTicketRequest(raw []byte) ([]string, *problem.Problem) {
	d := &ticketDecoder{raw: raw, tokens: json.NewDecoder(bytes.NewReader(raw))}
	d.want(json.Delim('{'), `an object such as {"watches":["orders"]}`)
	given := false
	for d.problem == nil && d.tokens.More() {
		name := d.next()
		switch {
		case name != "watches":
			d.mistake("unknown member %q: want only watches", name)
		case given:
			d.mistake(`the member "watches" is given twice: want it once`)
		default:
			given = true
			d.list()
		}
	}
	switch {
	case d.problem != nil:
		return nil, d.problem
	case len(d.watches) == 0:
		return nil, problem.BadParameter("body", `the body names no watch: want an object such as {"watches":["orders"]}`)
	}
	return d.watches, nil
}

// ticketDecoder reads the body of a request for a ticket. It stops at the first mistake.
//
// Owned by the goroutine of its request.
type ticketDecoder struct {
	raw     []byte
	tokens  *json.Decoder
	watches []string
	begin   int // of the last token
	problem *problem.Problem
}

// next returns the next token; nil for null, and after a mistake.
func (d *ticketDecoder) next() json.Token {
	if d.problem != nil {
		return nil
	}
	d.begin = int(d.tokens.InputOffset())
	for d.begin < len(d.raw) && bytes.IndexByte([]byte(" \t\r\n,:"), d.raw[d.begin]) >= 0 {
		d.begin++
	}
	token, err := d.tokens.Token()
	if err != nil {
		d.mistake("the body is not JSON: %v", err)
	}
	return token
}

func (d *ticketDecoder) want(token json.Delim, what string) {
	if got := d.next(); got != token {
		d.mistake("want %s", what)
	}
}

// list reads the names of the watches.
func (d *ticketDecoder) list() {
	d.want('[', "a list of names of watches")
	for d.problem == nil && d.tokens.More() {
		name, isText := d.next().(string)
		switch {
		case !isText || name == "":
			d.mistake("want the name of a watch")
		case slices.Contains(d.watches, name):
		case len(d.watches) == maxTicketWatches:
			d.mistake("the list has more than %d watches", maxTicketWatches)
		default:
			d.watches = append(d.watches, name)
		}
	}
	d.next()
}

// mistake records what is wrong with the last token, unless there was a mistake before.
func (d *ticketDecoder) mistake(format string, args ...any) {
	if d.problem == nil {
		line, column := place(d.raw, d.begin)
		d.problem = problem.BadParameter("body", "line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
	}
}
