package authz

import (
	"context"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/view"
)

// rules say what a principal may do with a watch. The zero value allows everything.
//
// Static after construction.
type rules struct {
	policy *access.Policy       // nil: there is none
	who    *credential.Identity // with a policy never nil
	entry  string               // under which the watch is declared
}

// rulesFor returns what the principal of a request may do with the watch of an entry, and
// whether it may see that there is a watch of that name. A request without an identity may do
// nothing.
func (l *Lookup) rulesFor(ctx context.Context, entry, name string) (rules, bool) {
	if l.config.Policy == nil {
		return rules{}, true
	}
	who := IdentityOf(ctx)
	if who == nil || !who.May(name) {
		return rules{}, false
	}
	return rules{l.config.Policy, who, entry}, l.config.Policy.Visible(who.Principal, entry)
}

// payer returns the client for which what a request uses counts: its principal, or the client of
// its address if it has none.
func (r rules) payer(client string) string {
	if r.policy == nil || r.who.IsAnonymous() {
		return client
	}
	return r.who.Key()
}

// readAll reports whether all of the watch may be read.
func (r rules) readAll() bool {
	may, ok := r.definition()
	return ok && may == nil
}

// definition returns what may be read; nil: all of the watch. false: nothing.
func (r rules) definition() (*view.Definition, bool) {
	if r.policy == nil {
		return nil, true
	}
	d, ok := r.policy.View(r.who.Principal, r.entry)
	if ok && d.IsWhole() {
		return nil, true
	}
	return d, ok
}
