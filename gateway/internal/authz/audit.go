package authz

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/stream"
)

type actionKey struct{}

// WithAction returns the context of a request that performs an action.
func WithAction(ctx context.Context, a access.Action) context.Context {
	return context.WithValue(ctx, actionKey{}, a)
}

// Record adds a decision about the principal of a request to the audit log, if there is one.
func (l *Lookup) Record(ctx context.Context, e access.AuditEntry) {
	if !l.config.Audit.Enabled() {
		return
	}
	if who := IdentityOf(ctx); who != nil {
		e = e.By(who.Principal)
		e.Via, e.Address = string(who.Via), who.Address
	}
	if e.Action == "" {
		e.Action, _ = ctx.Value(actionKey{}).(access.Action)
	}
	l.config.Audit.Record(e)
}

// RecordRefusal records and logs that a credential from an address was not accepted.
func (l *Lookup) RecordRefusal(ctx context.Context, why *access.Refusal, from netip.Addr) {
	l.config.Refusals.credential(why, from)
	e := access.AuditEntry{Decision: access.Denied, Action: access.Credential, Address: from, Status: why.Status, Reason: string(why.Reason)}
	l.Record(ctx, e.By(why.Expired))
}

// Reasons why a request gets no watch.
const (
	noSuchWatch = "there is no such watch"
	noRule      = "no rule of the watch applies"
	// notByUpstream is of writes alone.
	notByUpstream = "the upstream does not let the principal write"
)

// denied is unknown for a request that is refused.
func (l *Lookup) denied(ctx context.Context, name, reason string) *problem.Problem {
	p := l.unknown(ctx, name)
	l.Record(ctx, access.AuditEntry{Decision: access.Denied, Watch: name, Status: p.Status, Reason: reason})
	return p
}

// allowed records that a request gets a part of the watch.
func (h Handle) allowed(ctx context.Context, part Part) {
	if h.rules.policy == nil || !h.lookup.config.Audit.Enabled() {
		return
	}
	e := access.AuditEntry{Decision: access.Allowed, Watch: h.Name()}
	for _, r := range h.rules.policy.Readers(h.rules.who.Principal, h.rules.entry) {
		e.Rules = append(e.Rules, access.AuditRule{Role: r.Role, Number: r.Rule})
	}
	if part.definition != nil {
		e.View = part.definition.ID()
	}
	h.lookup.Record(ctx, e)
}

// verdict is a decision about a write. The zero value says that there was none.
//
// Owned by the goroutine of the request, or by the source while it evaluates the condition.
type verdict struct {
	access.Decision
	given    bool
	revision uint64 // of a resource that is to be deleted
}

// ofPut returns the entry of a write.
func (v verdict) ofPut(r stream.PutRequest, stored stream.Resource, created bool) access.AuditEntry {
	e := v.entry(access.Write)
	if !r.ValidateOnly {
		e.Revision = stored.Revision
	}
	if created {
		e.Status = http.StatusCreated
	}
	return e
}

// ofDelete returns the entry of a delete.
func (v verdict) ofDelete(r stream.DeleteRequest, deleted bool) access.AuditEntry {
	e := v.entry(access.Delete)
	if deleted && !r.ValidateOnly {
		e.Revision = v.revision
	}
	return e
}

// entry returns the fields that all entries of writes have. Without a decision, the entry has
// no action.
func (v verdict) entry(a access.Action) access.AuditEntry {
	switch {
	case !v.given:
		return access.AuditEntry{}
	case !v.Allowed:
		return access.AuditEntry{Decision: access.Denied, Action: a, Status: http.StatusOK, Reason: v.Reason}
	}
	return access.AuditEntry{Decision: access.Allowed, Action: a, Status: http.StatusOK, Rules: []access.AuditRule{{Role: v.Role, Number: v.Rule}}}
}

// byUpstream returns the entry of a write that has ended with err: another one if the upstream does not let its
// author write, which it decides before the rules, or after them.
func byUpstream(e access.AuditEntry, a access.Action, err error) access.AuditEntry {
	if errors.As(err, new(*stream.DeniedError)) {
		return access.AuditEntry{Decision: access.Denied, Action: a, Reason: notByUpstream}
	}
	return e
}

// written records a write that has ended with err.
func (h Handle) written(ctx context.Context, e access.AuditEntry, err error) {
	if e.Decision == "" {
		return
	}
	e.Watch = h.Name()
	if err != nil {
		e.Status, e.Revision = problem.Of(err).Status, 0
	}
	h.lookup.Record(ctx, e)
}
