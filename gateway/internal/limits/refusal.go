package limits

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/watch"
)

// Reason is why a stream was refused: a label of watchtide_refusals_total.
type Reason string

const (
	RefusedDraining    Reason = "draining"    // the gateway is shutting down
	refusedSubscribers Reason = "subscribers" // too many streams in all
	refusedWatch       Reason = "watch"       // too many of one watch
	refusedClient      Reason = "client"      // too many of one client
	RefusedPrincipal   Reason = "principal"   // too many of one principal
	RefusedMemory      Reason = "memory"      // the watch does not fit into its memory
	RefusedConnections Reason = "connections" // too many connections in all
	refusedTemplate    Reason = "template"    // too many watches of a template
	refusedRights      Reason = "rights"      // a cluster has not said yet what the client may read

	refusedClientTemplate Reason = "client_template" // too many of one client

	refusedViews       Reason = views.TooMany          // too many views in all
	refusedClientViews Reason = views.TooManyOfAClient // too many of one client
	refusedOrders      Reason = views.TooManyOrders    // too many orders of one client
	refusedWindows     Reason = views.TooManyWindows   // too many windows of one order of one client
	refusedViewMemory  Reason = views.NoMemory         // the views do not fit into their memory
)

// RefusalReasons are all reasons, for the metrics.
var RefusalReasons = [...]Reason{
	RefusedDraining, refusedSubscribers, refusedWatch, refusedClient, RefusedPrincipal, RefusedMemory, RefusedConnections, refusedTemplate, refusedClientTemplate, refusedRights,
	refusedViews, refusedClientViews, refusedOrders, refusedWindows, refusedViewMemory,
}

// OfView returns why a view of a watch was not opened for a client; nil if it was not
// because of a limit.
func OfView(watch string, c Client, err error) *Refusal {
	var limit *views.Refusal
	if !errors.As(err, &limit) {
		return nil
	}
	r := &Refusal{Reason: refusedViews, Limit: limit.Limit, Watch: watch, client: c}
	switch limit.Reason {
	case views.TooManyOfAClient:
		r.Reason = refusedClientViews
	case views.TooManyOrders:
		r.Reason = refusedOrders
	case views.TooManyWindows:
		r.Reason = refusedWindows
	case views.NoMemory:
		r.Reason = refusedViewMemory
	}
	return r
}

// Refusal is the reason why a stream was refused.
//
// It must not be modified once handed over.
type Refusal struct {
	Reason Reason
	Count  int    // open streams, connections or watches; see reason
	Limit  int    // how many may be open
	client Client // refusedClient, refusedClientViews, refusedOrders, refusedWindows
	Watch  string // refusedWatch, RefusedMemory, those of templates, and those of views
	// Parameter is one that asks for the view, as the client wrote it; "": none.
	Parameter string
}

// RefusalOf returns the refusal of a stream whose watch could not be found, if that is for
// lack of room, or since it is not known yet what the client may read; else nil.
func RefusalOf(p *problem.Problem) *Refusal {
	switch {
	case p.Undecided:
		return &Refusal{Reason: refusedRights, Watch: p.Watch}
	case p.Full == nil:
		return nil
	}
	return OfTemplate(p.Watch, p.Full)
}

// OfTemplate returns why a watch of a template was not opened, or may not be followed.
func OfTemplate(name string, full *watch.FullError) *Refusal {
	r := &Refusal{Reason: refusedTemplate, Count: full.Open, Limit: full.Max, Watch: name}
	if full.OfClient {
		r.Reason = refusedClientTemplate
	}
	return r
}

// Error returns the reason for the client, and what it can do about it.
func (r *Refusal) Error() string {
	switch r.Reason {
	case RefusedDraining:
		return "the gateway is shutting down: come back, to another replica if there is one"
	case refusedWatch:
		return fmt.Sprintf("watch %q has %d streams, of %d at most: come back later", r.Watch, r.Count, r.Limit)
	case refusedClient:
		return fmt.Sprintf("client %s has %d streams open, of %d at most: close some, or follow several watches in one stream", r.client, r.Count, r.Limit)
	case RefusedPrincipal:
		return fmt.Sprintf("you have %d streams open with this credential, or another one of yours, of %d at most: close some, or follow several watches in one stream", r.Count, r.Limit)
	case RefusedMemory:
		return fmt.Sprintf("watch %q takes no subscribers: it is too large for its memory ceiling", r.Watch)
	case refusedTemplate, refusedClientTemplate:
		return (&watch.FullError{Open: r.Count, Max: r.Limit, OfClient: r.Reason == refusedClientTemplate}).Error()
	case refusedRights:
		return fmt.Sprintf("what you may read of watch %q is not known now: come back later", r.Watch)
	case RefusedConnections:
		return fmt.Sprintf("%d connections are open, of %d at most: come back later, to another replica if there is one", r.Count, r.Limit)
	case refusedViews:
		return fmt.Sprintf("watch %q has no view for you yet, and there are as many views as allowed, %d: come back later, or ask for what others ask for too", r.Watch, r.Limit)
	case refusedClientViews:
		return fmt.Sprintf("%s as many different views as allowed, %d: close some, or ask for the same ones", r.client.has(), r.Limit)
	case refusedOrders:
		return fmt.Sprintf("%s windows in as many different orders as allowed, %d: close some, or ask for the same orders with other offsets", r.client.has(), r.Limit)
	case refusedWindows:
		return fmt.Sprintf("%s as many different windows of one order as allowed, %d, or fewer that have as many resources together as allowed: close some, or ask for the same ones", r.client.has(), r.Limit)
	case refusedViewMemory:
		return fmt.Sprintf("watch %q has no view for you yet, and the memory for views is used up: come back later, or ask for what others ask for too", r.Watch)
	default:
		return fmt.Sprintf("%d streams are open, of %d at most: come back later", r.Count, r.Limit)
	}
}

// Goodbye returns the reason for a client that cannot read a problem.
func (r *Refusal) Goodbye() stream.GoodbyeReason {
	if r.Reason == RefusedDraining {
		return stream.GoodbyeDraining
	}
	return stream.GoodbyeOverloaded
}

// Problem returns the answer: 429 if it is the client that has too many, else 503.
func (r *Refusal) Problem(retry time.Duration) *problem.Problem {
	status := http.StatusServiceUnavailable
	switch r.Reason {
	case refusedClient, RefusedPrincipal, refusedClientViews, refusedOrders, refusedWindows, refusedClientTemplate:
		status = http.StatusTooManyRequests
	}
	p := problem.New(status, "%s", r.Error())
	if r.Watch != "" {
		p.OnWatch(r.Watch)
	}
	p.Parameter, p.RetryAfter = r.Parameter, retry
	return p
}
