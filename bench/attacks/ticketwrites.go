package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

var ticketWrites = attack{
	name:  "ticket-writes",
	title: "somebody reads the ticket of a principal that may write in the log of a proxy, and writes, deletes, logs in and makes another ticket with it",
	run:   runTicketWrites,
}

const ticketConfiguration = listeners + accounts + `
sources: { a: { type: store } }
watches:
  notes: { source: a, allow: [ { role: writers, read: "true", write: "true", delete: "true" } ] }
`

func runTicketWrites(ctx context.Context, r *rig) error {
	t, err := r.start(ctx, ticketConfiguration, nil)
	if err != nil {
		return err
	}
	owner, thief := t.as("writer", "127.0.0.4"), t.as("", "127.0.0.66")
	if err := owner.put(ctx, "notes", "k", "1"); err != nil {
		return err
	}
	made, err := owner.ask(ctx, http.MethodPost, "/v1/tickets", `{"watches":["notes"]}`)
	if err != nil {
		return err
	}
	var ticket struct{ Ticket string }
	if err := json.Unmarshal([]byte(made.body), &ticket); err != nil {
		return fmt.Errorf("%d %s: %w", made.status, made.body, err)
	}
	with := "ticket=" + url.QueryEscape(ticket.Ticket)
	const resource = "/v1/watches/notes/resources/"
	for _, door := range []struct{ what, method, path, body, want string }{
		{"reads", http.MethodGet, resource + "k?", "", "200"},
		{"replaces", http.MethodPut, resource + "k?", "2", "403"},
		{"creates", http.MethodPut, resource + "new?", "2", "403"},
		{"validates a write", http.MethodPut, resource + "new?validate_only=true&", "2", "403"},
		{"deletes", http.MethodDelete, resource + "k?", "", "403"},
		{"begins a session", http.MethodPost, "/v1/session?", "", "403"},
		{"makes a ticket", http.MethodPost, "/v1/tickets?", `{"watches":["notes"]}`, "403"},
	} {
		a, err := thief.ask(ctx, door.method, door.path+with, door.body)
		if err != nil {
			return err
		}
		r.equal("a ticket "+door.what, door.want, fmt.Sprint(a.status))
	}
	after, err := owner.get(ctx, resource[:len(resource)-1])
	if err != nil {
		return err
	}
	r.report("the resources are as before", "k: 1", strings.Contains(after.body, `"value":1`) && !strings.Contains(after.body, "new"), "%.80s", strings.TrimSpace(after.body))
	return nil
}
