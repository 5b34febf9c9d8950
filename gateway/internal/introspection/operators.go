package introspection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/views"
	"github.com/watchtide/watchtide/stream/watch"
)

// Operators answers the requests of operators. The callers have checked that the requests are
// from operators.
//
// All methods may be called from any goroutine.
type Operators struct {
	Deps
	topology topologyCache
}

// Deps are the parts of the gateway that operators see.
//
// Static after construction.
type Deps struct {
	Instance, Version string
	Started           time.Time
	DeliveryReports   bool // they are accepted

	Registry *watch.Registry
	Lookup   *authz.Lookup
	Streams  *List
	Carriers func() []Carrier
	Recorder *Recorder
	Siblings *Siblings
	// Views are those that clients have asked for.
	Views interface {
		Largest(n int, watch string) []views.Listed
	}
	// Readiness says whether traffic may be sent here, and why not.
	Readiness func(now time.Time) (ready bool, reasons []string)
	// Limits says how much of what is limited is in use.
	Limits func() []Limit

	Answers *limits.Answers
	Proxies limits.Proxies
}

// NewOperators returns the handlers.
func NewOperators(d Deps) *Operators { return &Operators{Deps: d} }

// Replica answers with the state of this replica.
func (o *Operators) Replica(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	body, _ := json.Marshal(o.Self(time.Now())) // never fails: everything in it can be marshalled
	wire.WriteJSON(w, r, append(body, '\n'))
}

// ReplicasAnswer is what GET /v1/replicas answers, apart from the siblings.
type ReplicasAnswer struct {
	Instance   string   `json:"instance"`
	Self       Instance `json:"self"`
	Configured bool     `json:"configured"`
}

// Replicas answers with the states of this replica and of its siblings.
func (o *Operators) Replicas(w http.ResponseWriter, r *http.Request) {
	if _, p := problem.Query(r); p != nil {
		problem.Write(w, p)
		return
	}
	siblings := o.Siblings.Ask(r.Context())
	body, _ := json.Marshal(ReplicasAnswer{o.Instance, o.Self(time.Now()), o.Siblings.Any()}) // never fails
	body = append(bytes.TrimSuffix(body, []byte("}")), `,"siblings":`...)
	wire.WriteJSON(w, r, body, siblings, []byte("}\n"))
}

// Self returns the name and the state of this replica at a time.
func (o *Operators) Self(now time.Time) Instance {
	ready, reasons := o.Readiness(now)
	host, _ := os.Hostname() // empty if the system has none
	return Instance{
		Instance: o.Instance, Host: host, Version: o.Version, Started: o.Started.UTC().Truncate(time.Millisecond), Uptime: now.Sub(o.Started).Seconds(),
		Ready: ready, Reasons: reasons, Limits: o.Limits(), Watches: o.instanceWatches(),
	}
}

// instanceWatches says how far this replica is with its watches, without those of templates.
func (o *Operators) instanceWatches() []SiblingWatch {
	out := []SiblingWatch{}
	for _, w := range o.Registry.Watches() {
		if w.Template() != nil {
			continue
		}
		v := w.Snapshot()
		s := v.Status()
		out = append(out, SiblingWatch{
			Name: w.Name(), Epoch: v.Epoch(), Revision: v.Revision(), State: s.State.String(), Since: s.Since.UTC().Truncate(time.Millisecond), Reason: s.Full(),
			Memory: MemoryOf(w.Memory()),
		})
	}
	return out
}

// MemoryOfWatches is what all watches hold, and the ceiling that they share.
func MemoryOfWatches(all []*watch.Watch) (sum Memory) {
	for _, w := range all {
		own, shared := MemoryOf(w.Memory()), MemoryOf(w.SharedMemory())
		sum.Used, sum.Served = sum.Used+own.Used, sum.Served+own.Served
		sum.Most, sum.MostServed = max(sum.Most, shared.Most), max(sum.MostServed, shared.MostServed)
	}
	return sum
}

const (
	defaultSeries = 100
	maxSeries     = 200
	// sampleBytes is about what an answer takes for one sample of one watch: eleven numbers, in
	// memory and as text.
	sampleBytes = 11 * 10
)

// seriesAnswer is what GET /v1/series answers.
type seriesAnswer struct {
	Instance        string `json:"instance"`
	DeliveryReports bool   `json:"delivery_reports"` // they are accepted
	SeriesAnswer
}

// Series serves the figures of the last hour.
func (o *Operators) Series(w http.ResponseWriter, r *http.Request) {
	q, p := o.seriesQuery(r)
	if p != nil {
		problem.Write(w, p)
		return
	}
	answer := o.Answers.Answer(limits.Payer(authz.IdentityOf(r.Context()), o.Proxies.ClientOfRequest(r)))
	defer answer.Release()
	if err := answer.Reserve(r.Context(), int64(q.Limit+1)*q.Samples(time.Now())*sampleBytes); err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	body, err := json.Marshal(seriesAnswer{o.Instance, o.DeliveryReports, o.Recorder.Ask(q)})
	if err != nil {
		problem.Write(w, problem.Of(err)) // never: everything in it can be marshalled
		return
	}
	wire.WriteJSON(w, r, append(body, '\n'))
}

// seriesQuery reads the parameters of a request for figures.
func (o *Operators) seriesQuery(r *http.Request) (q SeriesQuery, p *problem.Problem) {
	query, p := problem.Query(r, "watch", "step", "since", "limit")
	if p != nil {
		return q, p
	}
	q = SeriesQuery{Entry: query.Get("watch"), Step: Fine, Limit: defaultSeries}
	switch step := query.Get("step"); step {
	case "", "1s":
	case "10s":
		q.Step = Coarse
	default:
		return q, problem.BadParameter("step", "step %q: want 1s, for the last five minutes, or 10s, for the last hour", step)
	}
	since, p := problem.Uint(query, "since", 1<<40)
	if p != nil {
		return q, p
	}
	q.Since = time.Unix(int64(since), 0)
	if query.Has("limit") {
		limit, p := problem.Uint(query, "limit", maxSeries)
		if p != nil {
			return q, p
		}
		q.Limit = int(limit)
	}
	if query.Has("watch") {
		q.Limit = 1
		return q, o.checkEntry(q.Entry)
	}
	return q, nil
}

// checkEntry returns a 404 for what is neither a watch of the configuration nor a template.
func (o *Operators) checkEntry(name string) *problem.Problem {
	for _, t := range o.Registry.Templates() {
		if t.Name() == name {
			return nil
		}
	}
	w, p := o.Lookup.Known(name)
	if p == nil && w.Template() != nil {
		p = problem.New(http.StatusNotFound, "the figures of the watches of a template are added up: ask for watch %q", w.Template().Name())
	}
	if p != nil {
		p.Parameter = "watch"
	}
	return p
}

// TopologyFor is how long an answer is used for further requests: very many pages of operators cost
// one walk over the subscribers.
const TopologyFor = time.Second

// topologyCache has the last answers. Requests wait for the one that makes theirs.
type topologyCache struct {
	mu   sync.Mutex // guards the following field
	last map[Property]topologyAnswer
}

// topologyAnswer is an answer, and when it was made.
type topologyAnswer struct {
	at   time.Time
	body []byte
}

// Topology serves the topology.
func (o *Operators) Topology(w http.ResponseWriter, r *http.Request) {
	query, p := problem.Query(r, "group")
	by, p := choiceOf(query, "group", Kinds, p)
	if p != nil {
		problem.Write(w, p)
		return
	}
	problem.WriteJSONBody(w, o.topology.of(o, cmp.Or(by, ByApplication)))
}

// of returns the topology with the groups of one of Kinds.
func (c *topologyCache) of(o *Operators, by Property) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, now := c.last[by], time.Now()
	if last.body != nil && now.Sub(last.at) < TopologyFor {
		return last.body
	}
	body, _ := json.Marshal(o.newTopology(now, by)) // everything in it can be marshalled
	if c.last == nil {
		c.last = map[Property]topologyAnswer{}
	}
	c.last[by] = topologyAnswer{now, append(body, '\n')}
	return c.last[by].body
}

func (o *Operators) newTopology(now time.Time, by Property) Topology {
	census := TakeCensus(o.Streams, o.Carriers(), by, MaxListedGroups)
	return NewTopology(now, o.Instance, o.Registry.Watches(), o.Views.Largest(math.MaxInt, ""), census)
}
