package session

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
	"github.com/watchtide/watchtide/gateway/internal/introspection"
	"github.com/watchtide/watchtide/gateway/internal/problem"
	"github.com/watchtide/watchtide/gateway/internal/wire"
	"github.com/watchtide/watchtide/internal/frame"
	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Request is a stream request, parsed and checked. Whether the watches exist is
// not known yet.
type Request struct {
	Format frame.Format // 0: it is not text
	// Transport is the name of what carries the session, unless it is a stream in the format.
	Transport string
	Coding    wire.Coding // that the client prefers
	Until     bool        // end after the last end_of_snapshot
	Digest    bool        // send digests
	Verify    bool        // in place of a reset, send a digest of what the client has to have
	Deletes   bool        // begin snapshots with the deletes that are remembered
	// Interval is how often changes are sent at most; 0: as they come.
	Interval time.Duration
	Watches  []Choice // at least one, each name once, in the order of the request
	// Narrowings has what narrows each of the watches.
	Narrowings []authz.Narrowing
	// EventSource reports that the client named text/event-stream in Accept, as every
	// browser's EventSource does: it gives up permanently on an answer other than
	// 200.
	EventSource bool
}

// Choice is one watch of a stream.
type Choice struct {
	Name    string
	View    introspection.ViewRef // the part of the watch that is followed
	counted bool                  // counts of that are followed
	first   []string              // keys that come first in a snapshot
	resume  *stream.Position      // nil: from the beginning
	invalid bool                  // a position was given, but could not be parsed
}

func (c *Choice) followed() introspection.Followed {
	return introspection.Followed{Watch: c.Name, View: c.View}
}

// streamParameters are the parameters of a stream whose path names no watch.
var streamParameters = problem.Parameters{
	Once:     []string{"last_event_id", "resume", "digest", "deletes", "until", "max_rate", "prefix", "labels", "filter", "order", "limit", "offset", "after", "sum", "format", "prefix.", "labels.", "filter.", "order.", "limit.", "offset.", "after.", "sum."},
	Repeated: []string{"watch", "fields", "by", "fields.", "by.", "keys", "keys.", "first", "first."},
	Foreign:  addedIDs,
	Hints:    streamHints,
}

// streamHints are what to say of parameters that other streams have.
var streamHints = map[string]string{"min_interval": "want max_rate, as in max_rate=2/s for once in 500 ms"}

// countParameters are the parameters of a stream of counts.
var countParameters = func() problem.Parameters {
	p := authz.Countable("last_event_id", "deletes", "until", "max_rate", "format")
	p.Repeated, p.Foreign = append(p.Repeated, "first"), addedIDs
	maps.Copy(p.Hints, streamHints)
	return p
}()

// addedIDs are the parameters with which a client adds the last id to its URL when it comes back,
// because it cannot send the header Last-Event-ID: the EventSource polyfills event-source-polyfill
// and reconnecting-eventsource, and clients of Mercure, new and old.
var addedIDs = []string{"lastEventId", "lastEventID", "Last-Event-ID"}

// ParseRequest parses the query and the headers of a stream request. name is
// the watch that the path names, or empty if the query names the watches.
func ParseRequest(query string, header http.Header, name string) (Request, *problem.Problem) {
	q, p := parseStreamQuery(query, name != "")
	if p != nil {
		return Request{}, p
	}
	req, p := parseRequest(q, header, name)
	if p != nil {
		return req, p
	}
	if req.Narrowings, p = authz.Narrowings(q, namesOf(req.Watches)); p != nil {
		return req, p
	}
	return req, applyFirst(req.Watches, q)
}

// ParseCountsRequest is ParseRequest for a stream of counts of the watch that the path names.
func ParseCountsRequest(query string, header http.Header, name string) (Request, *problem.Problem) {
	q, p := problem.ParseQuery(query, countParameters)
	if p != nil {
		return Request{}, p
	}
	req, p := parseRequest(q, header, name)
	req.Narrowings = []authz.Narrowing{authz.CountingOf(q)}
	if p != nil {
		return req, p
	}
	return req, applyFirst(req.Watches, q)
}

// parseRequest parses what all streams may have.
func parseRequest(q url.Values, header http.Header, name string) (req Request, p *problem.Problem) {
	if req.Format, p = wire.ChooseFormat(q.Get("format"), q.Has("format"), header.Values("Accept")); p != nil {
		return req, p
	}
	req.EventSource = req.Format == frame.SSE && wire.NamesEventStream(header.Values("Accept"))
	if req.Until, p = parseUntil(q); p != nil {
		return req, p
	}
	req.Coding = wire.PreferredCoding(header.Values("Accept-Encoding"), codings(req.Until)...)
	if req.Digest, req.Verify, p = parseDigest(q); p != nil {
		return req, p
	}
	if req.Deletes = q.Has("deletes"); req.Deletes && q.Get("deletes") != "1" {
		return req, problem.BadParameter("deletes", "deletes is %q: want 1", q.Get("deletes"))
	}
	if q.Has("max_rate") {
		if req.Interval, p = ParseMaxRate(q.Get("max_rate")); p != nil {
			return req, p
		}
	}
	if req.Watches, p = chooseWatches(q["watch"], name); p != nil {
		return req, p
	}
	id, p := lastEventID(header, q)
	if p != nil {
		return req, p
	}
	return req, applyPositions(req.Watches, id)
}

// codings are the codings in which a stream is offered, the best one first. Zstd is for streams that end
// with their snapshot: the few bytes of a change are not worth a frame.
func codings(until bool) []wire.Coding {
	if until {
		return []wire.Coding{wire.Zstd, wire.Gzip}
	}
	return []wire.Coding{wire.Gzip}
}

// applyFirst gives each watch the keys that come first.
func applyFirst(choices []Choice, q url.Values) *problem.Problem {
	for _, name := range slices.Sorted(maps.Keys(q)) { // so that the same mistakes get the same answer
		texts := q[name]
		base, of, dotted := strings.Cut(name, ".")
		if base != "first" {
			continue
		}
		i := 0
		if dotted {
			i = indexOf(choices, of)
		}
		switch {
		case i < 0:
			return problem.BadParameter(name, "watch %q is not part of this stream", of).OnWatch(of)
		case !dotted && len(choices) > 1:
			return problem.BadParameter(name, "which watch is it about? In a stream of several, want first.%s=…", choices[0].Name)
		case len(choices[i].first) > 0:
			return problem.BadParameter(name, "both first and first.%s are given: want one of them", choices[i].Name).OnWatch(choices[i].Name)
		}
		first, err := ParseFirst(texts)
		if err != nil {
			return FirstRefused(name, err).OnWatch(choices[i].Name)
		}
		choices[i].first = first
	}
	return nil
}

// ParseFirst reads the keys that come first: each text has some, with commas between them.
func ParseFirst(texts []string) (keys []string, err error) {
	for _, text := range texts {
		if text == "" {
			continue
		}
		some, err := view.ParseKeys(text)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, some...); len(keys) > view.MaxKeys {
			return nil, fmt.Errorf("there are %d keys, and at most %d are allowed", len(keys), view.MaxKeys)
		}
	}
	return keys, nil
}

// FirstRefused returns the answer to an error of ParseFirst of a parameter.
func FirstRefused(parameter string, err error) *problem.Problem {
	var e *view.Error
	if !errors.As(err, &e) {
		return problem.BadParameter(parameter, "%s: %v", parameter, err)
	}
	text := *e
	text.Parameter = parameter
	p := problem.BadParameter(parameter, "%s", text.Error())
	p.Place = &problem.Place{Offset: e.Offset, Line: e.Line, Column: e.Column}
	return p
}

// parseStreamQuery parses the query. inPath reports that the path names the
// watch.
func parseStreamQuery(query string, inPath bool) (url.Values, *problem.Problem) {
	q, p := problem.ParseQuery(query, streamParameters)
	if p == nil && inPath && q.Has("watch") {
		return nil, problem.BadParameter("watch", "the path names the watch already: leave watch out, or use /v1/events")
	}
	return q, p
}

// UntilEndOfSnapshot is the value of the parameter until that ends a stream with its
// snapshot.
const UntilEndOfSnapshot = "end_of_snapshot"

func parseUntil(q url.Values) (bool, *problem.Problem) {
	if !q.Has("until") {
		return false, nil
	}
	if got := q.Get("until"); got != UntilEndOfSnapshot {
		return false, problem.BadParameter("until", "until is %q: want %s", got, UntilEndOfSnapshot)
	}
	return true, nil
}

// parseDigest returns whether the stream has digests, and whether the client can resume with one.
func parseDigest(q url.Values) (digest, verify bool, p *problem.Problem) {
	if got := q.Get("digest"); got != "1" && q.Has("digest") {
		return false, false, problem.BadParameter("digest", "digest is %q: want 1", got)
	}
	if got := q.Get("resume"); got != ResumeByDigest && q.Has("resume") {
		return false, false, problem.BadParameter("resume", "resume is %q: want %s", got, ResumeByDigest)
	}
	return q.Has("digest") || q.Has("resume"), q.Has("resume"), nil
}

// ParseMaxRate returns the interval of a rate, as in 2/s or 10/m: the shortest one there is that is not
// shorter than asked for.
func ParseMaxRate(rate string) (time.Duration, *problem.Problem) {
	count, unit, _ := strings.Cut(rate, "/")
	n, err := strconv.ParseUint(count, 10, 16)
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute}[unit]
	if err != nil || n == 0 || per == 0 {
		return 0, problem.BadParameter("max_rate", "max_rate is %s: want a whole number of times, from 1 to %d, for each second or minute, such as 2/s or 10/m; the lowest rate is 1/m", view.Quoted(rate), math.MaxUint16)
	}
	i := slices.IndexFunc(log.Intervals, func(interval time.Duration) bool { return interval*time.Duration(n) >= per })
	return log.Intervals[i], nil // the last one is a minute, and per is no more
}

// ResumeByDigest is the value of the parameter resume with which a client verifies what it has
// where its position cannot be resumed.
const ResumeByDigest = "digest"

// chooseWatches makes the watches of the stream from their names. It refuses a stream
// whose ids could become too long: it could not be resumed.
func chooseWatches(names []string, inPath string) ([]Choice, *problem.Problem) {
	if inPath != "" {
		names = []string{inPath}
	}
	if len(names) == 0 {
		return nil, problem.BadParameter("watch", "no watch is named: want ?watch=NAME, once for each watch")
	}
	var choices []Choice
	length := -1 // no comma before the first
	for _, name := range names {
		if indexOf(choices, name) >= 0 {
			return nil, problem.BadParameter("watch", "watch %q is named twice: want each once", name).OnWatch(name)
		}
		length += 1 + stream.LongestPosition(name)
		if length > stream.MaxPositionLength {
			p := problem.New(http.StatusRequestURITooLong,
				"the ids of a stream of these watches could be longer than %d bytes: name fewer watches in one stream", stream.MaxPositionLength)
			p.Parameter = "watch"
			return nil, p
		}
		choices = append(choices, Choice{Name: name})
	}
	return choices, nil
}

func namesOf(choices []Choice) []string {
	names := make([]string, len(choices))
	for i := range choices {
		names[i] = choices[i].Name
	}
	return names
}

func indexOf(choices []Choice, name string) int {
	return slices.IndexFunc(choices, func(c Choice) bool { return c.Name == name })
}

// lastEventID returns the positions from which the client resumes. The header wins, and then what
// a client adds to its URL: one that comes back by itself sends its newest id there, and cannot
// change the URL that it was given, which may have an older one.
func lastEventID(header http.Header, q url.Values) (string, *problem.Problem) {
	if id := header.Get("Last-Event-ID"); id != "" {
		return id, nil
	}
	added, by := "", ""
	for _, name := range addedIDs {
		id := lastOf(q[name])
		if id == "" || id == added {
			continue
		}
		if added != "" {
			return "", problem.BadParameter(name, "%q and %q name different positions: want one of them", by, name)
		}
		added, by = id, name
	}
	return cmp.Or(added, q.Get("last_event_id")), nil
}

// lastOf returns the last of some values: a client adds to the end of its URL.
func lastOf(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// applyPositions gives each watch its position. Positions of other watches are
// ignored. Positions that cannot be parsed are no reason to refuse: a browser would
// repeat them forever. The watches report that instead, and begin from nothing.
func applyPositions(choices []Choice, id string) *problem.Problem {
	if len(id) > stream.MaxPositionLength {
		p := problem.New(http.StatusRequestURITooLong,
			"the last event id has %d bytes: want an id as it was sent, of at most %d", len(id), stream.MaxPositionLength)
		p.Parameter = "last_event_id"
		return p
	}
	positions, err := stream.ParsePositions(id)
	if err != nil {
		for i := range choices {
			choices[i].invalid = true
		}
		return nil
	}
	for _, position := range positions {
		if i := indexOf(choices, position.Watch); i >= 0 {
			choices[i].resume = &position
		}
	}
	return nil
}

// RequestOne returns the request of a session of one watch that another transport than a stream over
// HTTP carries. A position that cannot be parsed, or that belongs to another watch, is answered by a
// reset with that reason; the position may be empty. The resources with the keys in first come first.
func RequestOne(transport, watch, position string, first ...string) Request {
	choice := Choice{Name: watch, first: first}
	if p, err := stream.ParsePosition(position); position != "" && (err != nil || p.Watch != watch) {
		choice.invalid = true
	} else if position != "" {
		choice.resume = &p
	}
	return Request{Transport: transport, Watches: []Choice{choice}}
}
