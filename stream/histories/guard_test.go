package histories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/streamtest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// rule is what a principal may see: the resources for which read is true, and if it hides, without the member secret
// of their values.
type rule struct {
	read  string
	hides bool
}

// rules are what principals may see: the first is nothing. Every value has the member secret.
var rules = []rule{
	{}, {read: `key.startsWith("a/")`}, {read: `value.n % 2 == 0`}, {read: `value.n % 2 == 1`}, {read: `value.n % 3 == 0`},
	{read: `!key.startsWith("a/")`}, {`key.startsWith("a/")`, true}, {`value.n % 2 == 0`, true}, {"true", true},
}

func (r rule) String() string {
	if r.hides {
		return fmt.Sprintf("%q except secret", r.read)
	}
	return fmt.Sprintf("%q", r.read)
}

// except returns the fields that the rule leaves out.
func (r rule) except() []string {
	if r.hides {
		return []string{"secret"}
	}
	return nil
}

// principal may see what one rule allows, at the second gateway of each node. What it is sent
// is compared only with what it could see: it lies about what it has.
type principal struct {
	name  string
	token string
	line  string // of the tokens file
	rule  int
	could []could  // what it could see before
	ids   []string // that it ever had
	told  []told
}

// could is a rule, and the revision up to which it could see that part. A rule applies to every
// version, also to those from before it was given: the history shows them.
type could struct {
	rule int
	to   uint64
}

// told is an event that a principal was sent.
type told struct {
	event stream.Event
	where string
}

// guard makes the principals.
func (w *world) guard() error {
	for _, name := range []string{"ann", "bob"} {
		p := &principal{name: name, rule: w.pick(len(rules))}
		var err error
		if p.token, p.line, err = access.NewToken(name, nil); err != nil {
			return err
		}
		w.principals = append(w.principals, p)
	}
	return nil
}

// guarded returns the configuration of a gateway with the rules of now.
func (n *node) guarded() (gateway.Config, error) {
	var of access.PolicyConfig
	var lines []string
	watch := access.WatchRules{Name: "w"}
	for _, p := range n.world.principals {
		of.Roles = append(of.Roles, access.Role{Name: p.name, When: fmt.Sprintf("principal.name == %q", p.name)})
		if p.rule > 0 {
			watch.Rules = append(watch.Rules, access.Rule{Role: p.name, Read: rules[p.rule].read, Except: rules[p.rule].except()})
		}
		lines = append(lines, p.line)
	}
	of.Watches = []access.WatchRules{watch}
	c := n.gateway()
	compiled, err := access.CompilePolicy(of)
	if err != nil {
		return c, err
	}
	table, err := access.ParseTokens([]byte(strings.Join(lines, "\n")))
	c.Access = &gateway.Access{Policy: compiled, Credentials: credential.Config{Tokens: table}}
	return c, err
}

// gateway returns the configuration of the gateways of a node.
func (n *node) gateway() gateway.Config {
	return gateway.Config{
		Registry: n.registry, Views: gateway.ViewLimits{Linger: n.linger}, Logger: slog.New(slog.DiscardHandler), StreamSettings: gateway.StreamSettings{Pump: gateway.PumpGoroutines, Compression: gateway.CompressionNone, Heartbeat: heartbeat, AheadWait: aheadWait, Retry: 100 * time.Millisecond, MaxAge: time.Hour},
	}
}

// changeRules gives principals other rules, at all nodes. Before and after it everything is at
// rest.
func (w *world) changeRules() error {
	if !w.shape.guarded {
		return nil
	}
	w.settle()
	p := w.principals[w.pick(len(w.principals))]
	return w.give(p, w.pick(len(rules)))
}

// give gives a principal a rule.
func (w *world) give(p *principal, rule int) error {
	w.say("%s may see %v, no longer %v", p.name, rules[rule], rules[p.rule])
	p.could = append(p.could, could{p.rule, w.upstream.Revision()})
	p.rule = rule
	for _, n := range w.nodes {
		if n.guards == nil {
			continue
		}
		c, err := n.guarded()
		if err != nil {
			return err
		}
		if err := n.guards.Reload(c); err != nil {
			return err
		}
	}
	w.settle()
	return nil
}

// visit lets a principal send a request to the second gateway of a node, with an id, and read
// the answer for some time. It returns its lines.
func (w *world) visit(p *principal, n *node, path, id string, stay time.Duration) (texts []string, err error) {
	a, l, err := w.enter(p, n, path, id)
	if err != nil || a == nil {
		return nil, err
	}
	w.settle()
	if stay > 0 {
		w.advance(stay)
	}
	return w.exit(p, n, a, l, id)
}

// enter sends a request; nil: the node cannot be reached.
func (w *world) enter(p *principal, n *node, path, id string) (*answer, *link, error) {
	if err := n.guardReachable(); err != nil {
		return nil, nil, err
	}
	l := newLink(p.name, []*node{n})
	l.guards = true
	header := map[string]string{"Accept": "application/x-ndjson", "Authorization": "Bearer " + p.token}
	path, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case strings.HasSuffix(path, "/changes"):
		q.Set("wait", "1s")
		if id != "" {
			q.Set("after", id)
		}
	case id != "":
		header["Last-Event-ID"] = id
	}
	return ask("http://"+l.host+path+"?"+q.Encode(), header), l, nil
}

// close reads the answer to a request, and ends it.
func (w *world) close(a *answer, l *link) (lines []line, status int, ended error) {
	lines, status, ended = a.take()
	a.cancel()
	l.cut()
	links.Delete(l.host)
	w.settle()
	return lines, status, ended
}

// exit closes a request, and keeps what the principal was told of resources.
func (w *world) exit(p *principal, n *node, a *answer, l *link, id string) (texts []string, err error) {
	lines, status, ended := w.close(a, l)
	if status >= 500 && status != 503 {
		return nil, fmt.Errorf("%s with %q at %s is answered with status %d", p.name, id, n.name, status)
	}
	if status != 200 {
		return nil, nil
	}
	for _, l := range lines {
		texts = append(texts, string(l.text))
		if err := p.hears(l.text, fmt.Sprintf("%s at %s with %q", p.name, n.name, id)); err != nil && (ended == nil || ended == io.EOF) {
			return nil, err
		}
	}
	return texts, nil
}

// hears keeps what a line tells, and the ids in it.
func (p *principal) hears(text []byte, where string) error {
	var of struct {
		wireEvent
		Events   []wireEvent `json:"events"`
		Position string      `json:"position"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	if of.ID != "" || of.Position != "" {
		p.ids = append(p.ids, of.ID+of.Position)
	}
	for _, e := range append(of.Events, of.wireEvent) {
		if e.Type == "upsert" || e.Type == "delete" {
			event, err := e.event()
			if err != nil {
				return err
			}
			p.told = append(p.told, told{event, where})
		}
	}
	return nil
}

// audit checks what the principals were told.
func (w *world) audit() error {
	truths := map[int]*streamtest.Truth{}
	for _, p := range w.principals {
		var rights, secrets []streamtest.Right
		for _, c := range append(p.could, could{p.rule, math.MaxUint64}) {
			if c.rule == 0 {
				continue
			}
			if truths[c.rule] == nil {
				shows := view.Grant{Filter: rules[c.rule].read, Except: rules[c.rule].except()}
				d, err := view.Parse(view.Params{Grants: []view.Grant{shows}})
				if err != nil {
					return err
				}
				truths[c.rule] = streamtest.TruthOfView(w.upstream.Truth(), d, w.served...)
			}
			rights = append(rights, streamtest.Right{Part: truths[c.rule], To: c.to})
			if !rules[c.rule].hides {
				secrets = append(secrets, rights[len(rights)-1])
			}
		}
		for _, t := range p.told {
			of := rights
			if bytes.Contains(t.event.Resource.Value, []byte("secret")) {
				of = secrets // whatever views make of the rules
			}
			if err := streamtest.Told(t.event, of...); err != nil {
				return fmt.Errorf("%w: %s", err, t.where)
			}
		}
	}
	return nil
}

// pry lets a principal that may not see the secrets ask for resources by their secrets.
func (w *world) pry() error {
	if !w.shape.guarded {
		return nil
	}
	p, n := w.principals[w.pick(len(w.principals))], w.nodes[w.pick(len(w.nodes))]
	if !rules[p.rule].hides {
		if err := w.give(p, len(rules)-1-w.pick(3)); err != nil {
			return err
		}
	}
	filter := oneOf(w.choices, `has(value.secret)`, `value.secret > 0`, `value.secret % 2 == 0`, `"secret" in value`, `value.secret == value.n`)
	path := oneOf(w.choices, "/v1/watches/w/events", "/v1/watches/w/changes") + "?filter=" + url.QueryEscape(filter)
	w.say("%s asks %s for %s", p.name, n.name, filter)
	before := len(p.told)
	if _, err := w.visit(p, n, path, "", 0); err != nil {
		return err
	}
	if told := p.told[before:]; len(told) > 0 {
		return fmt.Errorf("broke Confidential: %s, who may see %v, learns by %s of %q", p.name, rules[p.rule], filter, told[0].event.Resource.Key)
	}
	return nil
}

// glance is a window or counts of what a principal may see.
type glance struct {
	query string // of a stream; a query with by is for counts
	// want returns what it shows, given what the principal may see.
	want func(seen []stream.Resource) shown
}

// shown is the state of a glance: values by key, and what a window says besides.
type shown struct {
	values        map[string]string
	total, before int
}

// glances include those by the member secret: for a principal that may not see that, it is absent.
var glances = []glance{
	{"order=-n&limit=3", sortedBy("n", true, 0, 3)},
	{"order=n&offset=1&limit=2", sortedBy("n", false, 1, 2)},
	{"order=secret&limit=3", sortedBy("secret", false, 0, 3)},
	{"order=-secret&offset=1&limit=2", sortedBy("secret", true, 1, 2)},
	{"by=third&sum=n", grouped("n")},
	{"by=third&sum=secret", grouped("secret")},
}

// member returns a member of a value that is a number.
func member(r stream.Resource, name string) (n int, ok bool) {
	var value map[string]any
	if err := json.Unmarshal(r.Value, &value); err != nil {
		panic(err) // every value is an object
	}
	of, ok := value[name].(float64)
	return int(of), ok
}

// sortedBy is the window of a member. Resources without it come last, in both directions.
func sortedBy(name string, descending bool, offset, limit int) func([]stream.Resource) shown {
	return func(seen []stream.Resource) shown {
		slices.SortFunc(seen, func(a, b stream.Resource) int {
			of, hasA := member(a, name)
			than, hasB := member(b, name)
			switch {
			case hasA != hasB && hasA:
				return -1
			case hasA != hasB:
				return 1
			case descending:
				of, than = than, of
			}
			return cmp.Or(cmp.Compare(of, than), strings.Compare(a.Key, b.Key))
		})
		out := shown{values: map[string]string{}, total: len(seen), before: min(offset, len(seen))}
		rows := seen[out.before:]
		for _, r := range rows[:min(limit, len(rows))] {
			out.values[r.Key] = string(r.Value)
		}
		return out
	}
}

// grouped is one group of everything, with the sum of a member.
func grouped(sum string) func([]stream.Resource) shown {
	return func(seen []stream.Resource) shown {
		of, numbers := struct {
			Count int  `json:"count"`
			Sum   *int `json:"sum,omitempty"`
			Min   *int `json:"min,omitempty"`
			Max   *int `json:"max,omitempty"`
		}{Count: len(seen)}, []int{}
		for _, r := range seen {
			if n, ok := member(r, sum); ok {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) > 0 {
			total := 0
			for _, n := range numbers {
				total += n
			}
			least, greatest := slices.Min(numbers), slices.Max(numbers)
			of.Sum, of.Min, of.Max = &total, &least, &greatest
		}
		out := shown{values: map[string]string{}}
		if len(seen) > 0 {
			text, _ := json.Marshal(of)
			out.values["null"] = string(text)
		}
		return out
	}
}

// state returns what a stream shows at its end; false: it has not shown everything.
func state(lines []line) (out shown, whole bool, err error) {
	out.values = map[string]string{}
	for _, l := range lines {
		var e wireEvent
		if err := json.Unmarshal(l.text, &e); err != nil {
			return out, false, err
		}
		switch e.Type {
		case "reset":
			out, whole = shown{values: map[string]string{}}, false
		case "upsert":
			out.values[e.Key] = string(e.Value)
		case "delete":
			delete(out.values, e.Key)
		case "end_of_snapshot":
			whole = true
		case "status":
			whole = whole && e.State == "in_sync"
		}
		if e.Total != nil {
			out.total, out.before = *e.Total, e.Before
		}
	}
	return out, whole, nil
}

// look lets a principal follow a window or counts, while rules and resources may change. At rest
// they are those of what it is shown of the whole watch.
func (w *world) look() error {
	p, n := w.principals[w.pick(len(w.principals))], w.nodes[w.pick(len(w.nodes))]
	of := glances[w.pick(len(glances))]
	path := "/v1/watches/w/events?"
	if strings.HasPrefix(of.query, "by=") {
		path = "/v1/watches/w/counts/events?"
	}
	w.say("%s, who may see %v, follows %s at %s", p.name, rules[p.rule], of.query, n.name)
	a, l, err := w.enter(p, n, path+of.query, "")
	if err != nil {
		return err
	}
	w.settle()
	lives := n.lives
	for range w.pick(4) {
		if w.rarely(2) {
			err = w.give(p, w.pick(len(rules)))
		} else {
			err = w.commit()
		}
		if err != nil {
			return err
		}
		w.root().endpoint.Catch(-1)
		w.settle()
	}
	w.advance(2 * time.Second)
	before, known, err := w.wholeWatch(p, n)
	if err != nil {
		return err
	}
	w.advance(2 * time.Second) // totals are told once a second
	lines, status, ended := w.close(a, l)
	if status >= 500 && status != 503 {
		return fmt.Errorf("%s of %s at %s is answered with status %d", of.query, p.name, n.name, status)
	}
	if status != 200 || ended != nil {
		return nil
	}
	shows, whole, err := state(lines)
	if err != nil {
		return err
	}
	all, still, err := w.wholeWatch(p, n)
	if err != nil || !whole || !known || !still || n.lives != lives || !maps.Equal(all, before) {
		return err
	}
	var seen []stream.Resource
	for key, value := range all {
		seen = append(seen, stream.Resource{Key: key, Value: []byte(value)})
	}
	reached.add(1, "windows and counts of principals")
	if want := of.want(seen); !reflect.DeepEqual(shows, want) {
		return fmt.Errorf("broke Confidential: %s, who may see %v, is shown %v by %s, want %v of %v", p.name, rules[p.rule], shows, of.query, want, all)
	}
	return nil
}

// wholeWatch returns what a principal is shown of the whole watch at a node; false: not everything.
func (w *world) wholeWatch(p *principal, n *node) (values map[string]string, whole bool, err error) {
	a, l, err := w.enter(p, n, "/v1/watches/w/events", "")
	if err != nil {
		return nil, false, err
	}
	w.settle()
	lines, status, ended := w.close(a, l)
	out, whole, err := state(lines)
	return out.values, whole && status == 200 && ended == nil, err
}

// lie returns an id that a principal could make of those that it has, and of what it can guess.
func (w *world) lie(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	id := func() stream.Position {
		p, err := stream.ParsePosition(ids[len(ids)-1-w.pick(len(ids))])
		if err != nil {
			panic(err) // it was sent
		}
		return p
	}
	revision := func() uint64 {
		head := w.upstream.Revision()
		return oneOf(w.choices, head, head-min(head, uint64(w.pick(8))), id().AsOf, uint64(w.pick(int(head)+3)))
	}
	p := id()
	switch w.pick(6) {
	case 0, 1, 2:
		p.AsOf = revision()
		p.Upserts = p.AsOf
	case 3:
		p.AsOf = revision()
		p.Upserts = uint64(w.pick(int(p.AsOf) + 1))
	case 4:
		p.Epoch = id().Epoch
	}
	if p.DeletesBehind, p.Run = 0, 0; strings.HasPrefix(p.Epoch, stream.UnnumberedEpoch) {
		if w.rarely(2) {
			p.DeletesBehind = uint64(w.pick(int(min(p.AsOf, 20)) + 1))
		}
		if !p.Partial() && w.rarely(2) {
			p.Run = id().Run
		}
	}
	if _, err := stream.ParsePosition(p.String()); err != nil {
		return ids[len(ids)-1] // it is impossible
	}
	return p.String()
}

// betray lets a principal follow what it may see, lose that while more happens, and come back
// with a lie.
func (w *world) betray() error {
	if !w.shape.guarded {
		return nil
	}
	p, n := w.principals[w.pick(len(w.principals))], w.nodes[w.pick(len(w.nodes))]
	path := oneOf(w.choices, "/v1/watches/w/events", "/v1/watches/w/events", "/v1/watches/w/changes")
	if w.shape.windows && w.rarely(3) {
		path += "?" + glances[w.pick(4)].query // a window
	}
	id := ""
	if w.rarely(3) {
		id = w.lie(p.ids)
	}
	w.say("%s follows %v at %s with %q", p.name, rules[p.rule], n.name, id)
	if _, err := w.visit(p, n, path, id, 0); err != nil {
		return err
	}
	if w.pick(4) > 0 {
		if err := w.give(p, w.pick(len(rules))); err != nil {
			return err
		}
	}
	for range 1 + w.pick(3) {
		if err := w.commit(); err != nil {
			return err
		}
		w.settle()
	}
	if w.rarely(2) {
		n = w.nodes[w.pick(len(w.nodes))]
	}
	for range 1 + w.pick(3) {
		id := w.lie(p.ids)
		w.say("%s says at %s that it has %q", p.name, n.name, id)
		if _, err := w.visit(p, n, path, id, 0); err != nil {
			return err
		}
	}
	return nil
}

// thereAndBack lets a stream of a principal switch to another part and back, and then the
// principal poll.
func (w *world) thereAndBack() error {
	if !w.shape.guarded {
		return nil
	}
	p, n := w.principals[w.pick(len(w.principals))], w.nodes[w.pick(len(w.nodes))]
	before := p.rule
	a, l, err := w.enter(p, n, "/v1/watches/w/events", "")
	if err != nil {
		return err
	}
	w.settle()
	for _, rule := range []int{1 + w.pick(len(rules)-1), before} {
		if err := w.give(p, rule); err != nil {
			return err
		}
		w.advance(time.Second)
	}
	if w.rarely(2) {
		if err := w.commit(); err != nil {
			return err
		}
	}
	if _, err := w.exit(p, n, a, l, ""); err != nil {
		return err
	}
	w.say("%s polls %s", p.name, n.name)
	lives, again, id := n.lives, 0, ""
	for range 4 {
		texts, err := w.visit(p, n, "/v1/watches/w/changes", id, 1500*time.Millisecond)
		if err != nil {
			return err
		}
		if len(texts) == 0 || n.lives != lives {
			return nil
		}
		if strings.Contains(texts[0], `"reason":"epoch_changed"`) {
			again++
		}
		id = p.ids[len(p.ids)-1]
	}
	if again > 1 {
		return fmt.Errorf("broke Resumable: %d of 4 long polls of %s are answered with everything again, and the rules have not changed", again, p.name)
	}
	return nil
}

// lieToAll sends a position that is a lie, made of any ids of all of the watch or a view, where
// everything may be seen. It must do no harm to others.
func (w *world) lieToAll() error {
	p := w.aPart()
	if len(p.ids) == 0 {
		return nil
	}
	var ids []string
	for _, m := range p.ids {
		ids = append(ids, m.Position.String())
	}
	position, err := stream.ParsePosition(w.lie(ids))
	if err != nil {
		return err
	}
	n := w.nodeOf(p)
	w.say("somebody says at %s that it has %v of %s", n.name, position, p.name)
	// What it is sent is of no use, so that it is recorded nowhere.
	c := (&streamtest.History{Truth: w.upstream.Truth(), Heartbeat: heartbeat}).Connect(p.of(n), streamtest.Dial{
		Client: "liar", Slow: true, From: &streamtest.Mark{Position: position, State: streamtest.State{}},
	})
	defer c.Close()
	for range 200 {
		if !c.Step() {
			break
		}
	}
	return c.CheckBytes()
}
