package streamtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ViewKeys are the keys of the resources: four that begin with a/, and another one.
var ViewKeys = []string{"a/1", "a/2", "a/3", "a/4", "b/1"}

// ViewUpstream is an upstream of a few resources, {"x":"…","team":"…","n":…}, that change at
// random. It belongs to one test.
//
// Owned by the goroutine of the test.
type ViewUpstream struct {
	*Upstream
	// Random decides. The test may use it too.
	Random *rand.Rand
	// Padding is a part of each value, to make it large.
	Padding string
	// Marked adds a marker of its own to each key and to each member of a value that no
	// definition selects by; see [streamtest.Marker]. It is set before the first change.
	Marked bool

	epochs  int // made by Act
	markers int // made by value
}

// NewViewUpstream returns an upstream whose deletes have revisions of the given kind.
func NewViewUpstream(random *rand.Rand, deletes DeleteRevisions) *ViewUpstream {
	return &ViewUpstream{Upstream: NewUpstream("e0", deletes), Random: random}
}

// Act performs a random action: a transaction, which a replica sees later, or a disturbance of
// this replica. It returns how long the replica takes to recover.
func (u *ViewUpstream) Act(r *Replica) time.Duration {
	switch n := u.Random.IntN(16); {
	case n < 8:
		u.Commit(1, u.writes()...)
	case n < 13:
		r.Catch(1 + u.Random.IntN(4))
	case n < 14:
		r.Disconnect(errors.New("cut"))
		return time.Second
	case n < 15:
		r.CutSnapshot(u.Random.IntN(3))
		r.Disconnect(nil)
		return time.Second
	case u.Random.IntN(4) == 0:
		u.epochs++
		u.Restore(fmt.Sprint("e", u.epochs), u.Oldest())
		r.Move()
	default:
		r.Move()
	}
	return 0
}

// writes are changes of a few resources.
func (u *ViewUpstream) writes() (out []Write) {
	for _, at := range u.Random.Perm(len(ViewKeys))[:1+u.Random.IntN(3)] {
		out = append(out, Write{Key: u.Key(at), Value: u.value(), Delete: u.Random.IntN(5) == 0})
	}
	return out
}

// Key returns the n-th of the keys.
func (u *ViewUpstream) Key(n int) string {
	if u.Marked {
		return ViewKeys[n] + Marker(n)
	}
	return ViewKeys[n]
}

func (u *ViewUpstream) value() string {
	team := []string{"red", "blue"}[u.Random.IntN(2)]
	x, n, rest := u.Random.IntN(100), u.Random.IntN(5), ""
	if u.Marked {
		rest = fmt.Sprintf(`,"y":["%s",{"z":"%s"}]`, u.marker(), u.marker())
	}
	value := fmt.Sprintf(`{"x":"%d%s%s","team":"%s","n":%d%s}`, x, u.marker(), u.Padding, team, n, rest)
	if u.Random.IntN(10) == 0 {
		value = fmt.Sprintf(`"no object%s"`, u.marker())
	}
	return value
}

// marker returns a new marker, or "" if nothing is marked.
func (u *ViewUpstream) marker() string {
	if !u.Marked {
		return ""
	}
	u.markers++
	return Marker(len(ViewKeys) + u.markers)
}

// Heal ends what disturbs a replica, and lets it see everything.
func Heal(r *Replica) {
	r.Refuse(nil)
	r.CutSnapshot(-1)
	r.Move()
	r.Catch(-1)
	r.Poll()
}
