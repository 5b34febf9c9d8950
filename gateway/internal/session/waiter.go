package session

import (
	"reflect"
	"time"

	"github.com/watchtide/watchtide/gateway/internal/authz"
)

// fewWatches is how many watches a stream waits on with an ordinary select, which
// allocates nothing. For more, reflect.Select is used.
const fewWatches = 4

// waiter waits for whichever comes first: a disconnect or input of the client, the
// drain, a change or the end of its authorization, a time, or news of any of the watches. Owned by one pump.
type waiter struct {
	// Static after construction.
	gone    <-chan struct{}
	ended   <-chan struct{} // closed when the authorization of the stream ends before its time; nil: it has none
	changed <-chan struct{} // signals that the stream must switch; nil: never
	until   bool            // watches that are in sync need no further waiting
	follows []Follow
	cases   []reflect.SelectCase // nil for few watches
	input   <-chan struct{}      // the client has sent something; nil: not of interest
	listen  func() bool          // reads it; false: the client disconnected

	timer *time.Timer
}

func newWaiter(gone <-chan struct{}, p *authz.Authorization, until bool, follows []Follow) *waiter {
	w := &waiter{gone: gone, ended: p.Ended(), changed: p.Changed(), until: until, follows: follows, timer: time.NewTimer(time.Hour)}
	if len(follows) > fewWatches {
		w.cases = make([]reflect.SelectCase, firstFollowCase+2*len(follows))
		for i := range w.cases {
			w.cases[i].Dir = reflect.SelectRecv
		}
	}
	return w
}

func (w *waiter) close() { w.timer.Stop() }

// wait returns true when there may be something to do, at the given time at the
// latest, and false when the client disconnected. Each watch must just have had
// nothing to send.
func (w *waiter) wait(draining <-chan struct{}, at time.Time) bool {
	w.timer.Reset(time.Until(at))
	if w.cases != nil {
		return w.waitMany(draining)
	}
	return w.waitFew(draining)
}

// waitFew has a case for each of a few watches; a nil channel is never ready.
func (w *waiter) waitFew(draining <-chan struct{}) bool {
	var changed, removed [fewWatches]<-chan struct{}
	for i := range w.follows {
		changed[i], removed[i] = w.follows[i].Changed(w.until), w.follows[i].Watch.Done()
	}
	select {
	case <-w.gone:
		return false
	case <-w.input:
		return w.listen()
	case <-draining:
	case <-w.ended:
	case <-w.changed:
	case <-w.timer.C:
	case <-changed[0]:
	case <-changed[1]:
	case <-changed[2]:
	case <-changed[3]:
	case <-removed[0]:
	case <-removed[1]:
	case <-removed[2]:
	case <-removed[3]:
	}
	return true
}

// The indexes of the cases of waitMany.
const (
	goneCase = iota
	inputCase
	drainingCase
	endedCase
	changedCase
	timerCase
	firstFollowCase
)

// waitMany is waitFew for any number of watches.
func (w *waiter) waitMany(draining <-chan struct{}) bool {
	w.cases[goneCase].Chan = reflect.ValueOf(w.gone)
	w.cases[inputCase].Chan = reflect.ValueOf(w.input)
	w.cases[drainingCase].Chan = reflect.ValueOf(draining)
	w.cases[endedCase].Chan = reflect.ValueOf(w.ended)
	w.cases[changedCase].Chan = reflect.ValueOf(w.changed)
	w.cases[timerCase].Chan = reflect.ValueOf(w.timer.C)
	for i := range w.follows {
		at := firstFollowCase + 2*i
		w.cases[at].Chan = reflect.ValueOf(w.follows[i].Changed(w.until))
		w.cases[at+1].Chan = reflect.ValueOf(w.follows[i].Watch.Done())
	}
	ready, _, _ := reflect.Select(w.cases)
	if ready == inputCase {
		return w.listen()
	}
	return ready != goneCase
}
