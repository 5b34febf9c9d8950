package authz

import (
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/stream"
)

// end ends an authorization, unless it has ended before. losses are the indexes of the watches that its holder
// may not see any more.
func (t *Table) end(p *Authorization, reason stream.GoodbyeReason, losses ...int) {
	if !p.end(reason, losses) {
		return
	}
	if reason == stream.GoodbyeRevoked {
		t.record(p, access.Revoke)
	} else {
		t.record(p, access.Move)
	}
}

// expired records that the credential of a stream has expired, if it has.
func (t *Table) expired(p *Authorization) {
	if p.ending.Load() == nil && p.ReasonToEnd(time.Now()) != "" {
		t.record(p, access.Expire)
	}
}

// record adds the end of an authorization to the audit log.
func (t *Table) record(p *Authorization, a access.Action) {
	if !t.Audit.Enabled() {
		return
	}
	who := p.validity.Load().who
	e := access.AuditEntry{Decision: access.Ended, Action: a, Via: string(who.Via), Address: who.Address, Stream: p.id, Watches: p.watches}
	t.Audit.Record(e.By(who.Principal))
}
