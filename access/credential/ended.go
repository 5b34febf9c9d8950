package credential

import (
	"sync"
	"time"

	"github.com/watchtide/watchtide/access"
)

const (
	// maxEndedOfOne is the number of ended sessions of one principal that are remembered one by
	// one. Beyond it, all that it began until then end.
	maxEndedOfOne = 100
	// maxEnded is the number of ended sessions that are remembered one by one, and the number of
	// principals that have ended any. Beyond the former, all sessions that these principals began
	// until then end; beyond the latter, those of everybody.
	maxEnded = 500_000
	// endedSweep is the least time between two sweeps for what need not be remembered any more.
	endedSweep = time.Minute
)

var errEnded = access.NewRefusal(access.Revoked, "the session has ended")

// ended remembers sessions that their users have ended on this replica, so that copies of the
// cookie are useless there. It forgets none before it expires: where there are too many to
// remember each, it ends more than was asked for. What it has is also kept with the revocations,
// where these can be written: see Ending.
type ended struct {
	most int // maxEnded; static after construction

	mu sync.Mutex
	// Guarded by mu.
	of    map[string]*endedOf // by endedKey
	count int                 // of sessions that are remembered one by one
	all   mark
	swept time.Time

	warned time.Time // of what could not be kept
}

// endedOf are the ended sessions of one principal.
type endedOf struct {
	ids map[string]time.Time // when each expires
	mark
	needless []string // keys of revocations that the mark makes needless
}

// mark ends all sessions that began at a time or before. The zero value ends none.
type mark struct {
	at    int64     // in milliseconds
	until time.Time // after which no session that was ended one by one can be used
}

func (m *mark) set(now, until time.Time) {
	m.at = now.UnixMilli()
	if until.After(m.until) {
		m.until = until
	}
}

func (m mark) ends(begun int64) bool { return m.at > 0 && begun <= m.at }

func newEnded() *ended { return &ended{most: maxEnded, of: map[string]*endedOf{}} }

// endedKey tells principals apart. Unlike the name of a principal, it does not depend on the
// configuration, which may change while a session is remembered.
func endedKey(p *access.Principal) string { return p.RevocationKeys()[0] }

// add remembers that a session of a principal has ended. It may have been renewed with another
// token, so it is remembered for as long as any session of a static token lasts. It returns what is to
// be kept.
func (e *ended) add(id *Identity) Ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, expires := time.Now(), id.Expires
	if least := now.Add(sessionLife); expires.Before(least) {
		expires = least
	}
	e.sweep(now)
	one := e.of[endedKey(id.Principal)]
	if one == nil {
		one = &endedOf{ids: map[string]time.Time{}}
		e.of[endedKey(id.Principal)] = one
	}
	if _, again := one.ids[id.ID]; !again {
		e.count++
	}
	one.ids[id.ID] = expires
	kept := Ending{Session: sessionPrefix + id.ID, Whose: EndingsKey(id.Principal), Expires: expires}
	if len(one.ids) > maxEndedOfOne {
		for id := range one.ids {
			one.needless = append(one.needless, sessionPrefix+id)
		}
		e.end(one, now)
	}
	one.pay(&kept)
	if e.count > e.most || len(e.of) > e.most {
		e.endMany(now)
	}
	return kept
}

// needlessAtOnce is how many needless resources one logout removes: more than it makes.
const needlessAtOnce = 2

// pay makes an ending remove resources of earlier ones, so that a principal cannot make more than it
// pays for.
func (o *endedOf) pay(kept *Ending) {
	n := min(needlessAtOnce, len(o.needless))
	if n == 0 {
		return
	}
	kept.Needless, o.needless = o.needless[:n:n], o.needless[n:]
	kept.Until = time.UnixMilli(o.at)
	if o.until.After(kept.Expires) {
		kept.Expires = o.until
	}
}

// end replaces what is remembered one by one of a principal with a mark.
func (e *ended) end(one *endedOf, now time.Time) {
	for _, expires := range one.ids {
		one.set(now, expires)
	}
	e.count -= len(one.ids)
	clear(one.ids)
}

// endMany replaces what is remembered one by one with marks, and too many marks with one.
func (e *ended) endMany(now time.Time) {
	for _, one := range e.of {
		e.end(one, now)
	}
	if len(e.of) <= e.most {
		return
	}
	for _, one := range e.of {
		e.all.set(now, one.until)
	}
	clear(e.of)
}

// sweep forgets what has expired.
func (e *ended) sweep(now time.Time) {
	if now.Sub(e.swept) < endedSweep {
		return
	}
	e.swept = now
	if now.After(e.all.until) {
		e.all = mark{}
	}
	for key, one := range e.of {
		for id, expires := range one.ids {
			if now.After(expires) {
				delete(one.ids, id)
				e.count--
			}
		}
		if now.After(one.until) {
			one.mark, one.needless = mark{}, nil
		}
		if len(one.ids) == 0 && one.at == 0 {
			delete(e.of, key)
		}
	}
}

// has reports whether a session has ended.
func (e *ended) has(id *Identity) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all.ends(id.begun) {
		return true
	}
	one := e.of[endedKey(id.Principal)]
	if one == nil {
		return false
	}
	_, ended := one.ids[id.ID]
	return ended || one.ends(id.begun)
}

// begin returns when a session of a principal that begins now began, in milliseconds: after the
// marks.
func (e *ended) begin(p *access.Principal) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	begun := max(time.Now().UnixMilli(), e.all.at+1)
	if one := e.of[endedKey(p)]; one != nil {
		begun = max(begun, one.at+1)
	}
	return begun
}
