package credential

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/watchtide/watchtide/access"
)

// Ending is a session that has ended, as it is kept with the revocations.
type Ending struct {
	// Session and Whose are the keys of the resources that end the session, and sessions of its
	// principal.
	Session, Whose string
	// Until, if not zero, is when the sessions of the principal began that have all ended.
	Until time.Time
	// Expires is when no such session can be used any more.
	Expires time.Time
	// Needless are keys of resources of earlier endings, which Until makes needless.
	Needless []string
}

const (
	sessionPrefix  = "session/"
	sessionsPrefix = "sessions/"
)

// EndingsKey returns the key of the resource that ends sessions of a principal by the time when they
// began.
func EndingsKey(p *access.Principal) string { return sessionsPrefix + endedKey(p) }

// keptEnding is the value of a resource of an ending.
type keptEnding struct {
	Why     string    `json:"why"`
	Until   time.Time `json:"until,omitzero"`
	Expires time.Time `json:"expires"`
}

// Value returns the value of a resource that lasts until a time, and ends sessions that began until
// another one, if that is not zero.
func (Ending) Value(until, expires time.Time) []byte {
	if !until.IsZero() {
		until = until.UTC().Truncate(time.Millisecond)
	}
	// Rounded up, so that it does not end before the session.
	expires = expires.UTC().Truncate(time.Second).Add(time.Second)
	text, _ := json.Marshal(keptEnding{Why: "signed out", Until: until, Expires: expires})
	return text
}

// ReadEnding returns what a resource of the revocations says about sessions that have ended; zero: it
// does not say it.
func ReadEnding(key string, value []byte) (until, expires time.Time) {
	if !strings.HasPrefix(key, sessionPrefix) && !strings.HasPrefix(key, sessionsPrefix) {
		return until, expires
	}
	var kept keptEnding
	if json.Unmarshal(value, &kept) != nil {
		return until, expires
	}
	return kept.Until, kept.Expires
}

// keepWait is how long the end of a session waits to be kept.
const keepWait = 5 * time.Second

// end ends a session, on this replica at once, and where revocations can be written, for certain. The
// client may be gone: its session ends all the same.
func (a *Authenticator) end(ctx context.Context, id *Identity) {
	kept := a.ended.add(id)
	if a.cfg.Revocations == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	if err := a.cfg.Revocations.Keep(ctx, kept); err != nil && a.ended.warns(time.Now()) && a.cfg.Log != nil {
		a.cfg.Log.Warn("the end of a session was not written to the watch of revocations: until the session expires, a copy of its cookie is accepted by other replicas, and after a restart",
			"error", err.Error())
	}
}

// warns reports whether a failure is to be logged: not more than one a minute is.
func (e *ended) warns(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Sub(e.warned) < time.Minute {
		return false
	}
	e.warned = now
	return true
}

// begun returns when a session of a principal that begins now began, in milliseconds: after
// everything that ends earlier ones.
func (a *Authenticator) begun(p *access.Principal) int64 {
	begun := a.ended.begin(p)
	if a.cfg.Revocations == nil {
		return begun
	}
	return max(begun, endOf(a.cfg.Revocations, p)+1)
}

// endOf returns until when sessions of a principal began that have ended, in milliseconds.
func endOf(r Revocations, p *access.Principal) int64 {
	return cmp.Or(millis(r.SessionsEnded(p)), -1)
}
