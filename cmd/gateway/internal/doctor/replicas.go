package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// attempts is how many connections are opened to find other replicas.
const attempts = 8

// checkReplicas compares what different replicas say of their watches.
func (e *Examination) checkReplicas(ctx context.Context) {
	e.doing(attempts*answerWithin, "looking for other replicas, with %d connections", attempts)
	seen := map[string]list{e.list.Instance: e.list}
	for range attempts {
		var l list
		if _, err := e.read(ctx, request{path: listPath, fresh: true}, &l); err != nil {
			e.problem(ctx, Replicas, "see whether each replica that the proxy chooses can be reached and is ready", "one of %d connections failed: %s", attempts, because(err))
			return
		}
		if _, known := seen[l.Instance]; known || l.Instance == "" {
			continue
		}
		seen[l.Instance] = l
		if found, mend := e.differs(l); found != "" {
			e.problem(ctx, Replicas, mend, "%s", found)
			return
		}
	}
	if len(seen) == 1 {
		e.ok(ctx, Replicas, "%d connections led to one replica", attempts)
		return
	}
	e.ok(ctx, Replicas, "%d connections led to %d replicas, which share their epochs", attempts, len(seen))
}

// differs compares the list of another replica with the first one. found is "" if clients can
// come back to either.
func (e *Examination) differs(other list) (found, mend string) {
	for _, w := range e.list.Watches {
		i := slices.IndexFunc(other.Watches, func(o watch) bool { return o.Name == w.Name })
		if i < 0 {
			return fmt.Sprintf("not all replicas have watch %q", shortened(w.Name)), "give all replicas the same configuration"
		}
		if o := other.Watches[i]; o.Epoch != w.Epoch && o.Epoch != "" && w.Epoch != "" {
			return fmt.Sprintf("the replicas have different epochs of watch %q, so that clients that come to another one get a reset and all of it again", shortened(w.Name)),
				"let all replicas follow the same upstream; a store or a host lives in one process, so serve it by one replica and let the others follow that one"
		}
	}
	return "", ""
}

// resumption is one attempt to resume.
type resumption struct {
	instance string
	mode     string
	reset    string // the reason; "": there was none
}

// checkResume resumes a stream, at another replica if one can be reached.
func (e *Examination) checkResume(ctx context.Context) {
	e.doing((attempts+1)*answerWithin, "resuming a stream")
	first, id, err := e.complete(ctx, "")
	if err != nil || id == "" {
		e.unknown(ctx, Resume, "there is no position: %s", reasonOf(err))
		return
	}
	for range attempts {
		next, _, err := e.complete(ctx, id)
		switch {
		case err != nil:
			e.unknown(ctx, Resume, "a stream with a position failed: %s", because(err))
			return
		case next.mode != "resume":
			e.problem(ctx, Resume, "let the proxy pass on Last-Event-ID", "the header Last-Event-ID does not reach the gateway, so that each lost connection costs a snapshot")
			return
		case next.reset != "":
			e.resetAt(ctx, next, next.instance != first.instance)
			return
		case next.instance != first.instance:
			e.ok(ctx, Resume, "at another replica, without a reset")
			return
		}
	}
	e.ok(ctx, Resume, "without a reset; no other replica was reached")
}

// resetAt reports a reset that should not have been.
func (e *Examination) resetAt(ctx context.Context, r resumption, elsewhere bool) {
	switch {
	case elsewhere && r.reset == "epoch_changed":
		e.unknown(ctx, Resume, "the replicas do not share their epochs")
	case elsewhere && r.reset == "expired":
		e.unknown(ctx, Resume, "another replica does not remember as much (reset: expired), as for some time after its start")
	case elsewhere && r.reset == "ahead":
		e.problem(ctx, Resume, "see why one replica is so far behind its upstream: its watch, its processor, its network", "another replica is behind, and has not caught up in time (reset: ahead)")
	default:
		e.problem(ctx, Resume, "see whether the upstream was restored or replaced just now, and whether the proxy changes Last-Event-ID", "a position was answered with a reset (%s)", shortened(r.reset))
	}
}

// complete reads a stream to the end of its snapshot, and returns its last id.
func (e *Examination) complete(ctx context.Context, lastID string) (r resumption, id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	s, err := e.open(ctx, ask{encoding: "identity", lastID: lastID, until: true})
	if err != nil {
		return r, "", err
	}
	defer s.Close()
	for {
		line, err := s.next()
		if text, ok := strings.CutPrefix(line, "id:"); ok {
			id = strings.TrimSpace(text)
		}
		if v, ok := eventIn(line); ok {
			switch v.Type {
			case "hello":
				r.instance = v.Instance
				if len(v.Watches) > 0 {
					r.mode = v.Watches[0].Mode
				}
			case "reset":
				r.reset = v.Reason
			case "goodbye":
				if v.Reason != "complete" {
					err = fmt.Errorf("the gateway said goodbye (%s)", shortened(v.Reason))
				}
				return r, id, err
			}
		}
		if err != nil {
			return r, id, err
		}
	}
}

func reasonOf(err error) string {
	if err == nil {
		return "the snapshot has none"
	}
	return because(err)
}
