package authz

import (
	"context"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/cluster"
	"github.com/watchtide/watchtide/internal/view"
)

// rules say what a principal may do with a watch. The zero value allows everything.
//
// Static after construction.
type rules struct {
	policy *access.Policy       // nil: there is none
	rights *cluster.Rights      // of the cluster that decides about some watches; nil: there is none
	who    *credential.Identity // with a policy never nil
	entry  string               // under which the watch is declared
}

// rulesFor returns what the principal of a request may do with the watch of an entry, and
// whether it may see that there is a watch of that name. A request without an identity may do
// nothing. The problem is that it is not known.
func (l *Lookup) rulesFor(ctx context.Context, entry, name string) (rules, bool, *problem.Problem) {
	if l.config.Policy == nil {
		return rules{}, true, nil
	}
	who := IdentityOf(ctx)
	if who == nil || !who.May(name) {
		return rules{}, false, nil
	}
	r := l.rules(who, entry)
	if p := l.await(ctx, r, name); p != nil {
		return rules{}, false, p
	}
	if _, decides := r.resource(); decides {
		_, ok := r.definition()
		return r, ok, nil
	}
	return r, l.config.Policy.Visible(who.Principal, entry), nil
}

// rules returns what an identity may do with the watch of an entry.
func (l *Lookup) rules(who *credential.Identity, entry string) rules {
	return rules{l.config.Policy, l.config.Rights, who, entry}
}

// await waits until it is known what a cluster lets a principal read, if it decides about the watch.
func (l *Lookup) await(ctx context.Context, r rules, name string) *problem.Problem {
	of, decides := r.resource()
	if !decides || r.rights == nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, l.config.PrimeWait)
	defer cancel()
	err := r.rights.Await(wait, r.who.Principal, of)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return problem.Of(ctx.Err())
	}
	return l.undecided(name, err)
}

// undecided is the answer to a request whose principal may perhaps read a watch, and perhaps not.
func (l *Lookup) undecided(name string, err error) *problem.Problem {
	p := problem.New(http.StatusServiceUnavailable, "%s: come back later", err.Error()).OnWatch(name)
	p.RetryAfter = max(2*l.config.Retry, time.Second)
	p.Undecided = true
	return p
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

// resource returns the resource of a cluster that decides who may read what of the watch; false: the
// rules do.
func (r rules) resource() (cluster.Resource, bool) {
	of, labelsAt, decides := r.policy.Cluster(r.entry)
	return cluster.Resource{Group: of.Group, Name: of.Resource, Namespace: of.Namespace, LabelsAt: labelsAt}, decides
}

// clusterWrites reports whether a cluster decides about each write to the watch: it is made in the name of the
// principal, so nothing is left to decide here.
func (r rules) clusterWrites() bool {
	if r.policy == nil {
		return false
	}
	of, _, decides := r.policy.Cluster(r.entry)
	return decides && of.Writes
}

// definition returns what may be read; nil: all of the watch. false: nothing, as far as is known.
func (r rules) definition() (*view.Definition, bool) {
	if r.policy == nil {
		return nil, true
	}
	if of, decides := r.resource(); decides {
		extent, _ := r.extent(of)
		return extent.Definition, extent.Any()
	}
	d, ok := r.policy.View(r.who.Principal, r.entry)
	if ok && d.IsWhole() {
		return nil, true
	}
	return d, ok
}

// extent returns what a cluster lets the principal read; false: that is not known.
func (r rules) extent(of cluster.Resource) (cluster.Extent, bool) {
	if r.rights == nil {
		return cluster.Extent{}, true
	}
	return r.rights.Of(r.who.Principal, of)
}

// isKnown reports whether it is known what may be read.
func (r rules) isKnown() bool {
	of, decides := r.resource()
	if r.policy == nil || !decides {
		return true
	}
	_, known := r.extent(of)
	return known
}
