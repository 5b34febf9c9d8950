package gateway

import (
	"cmp"
	"slices"
	"sync"

	"github.com/watchtide/watchtide/client"
)

// copies is how many times an event is in memory while it is read: in a buffer that is copied
// when it grows.
const copies = 2

// unfinished counts what has arrived of an event whose end has not. Whose event it is is not
// known before: it counts towards the memory of the watch that may hold the most.
type unfinished struct {
	// Static after construction.
	member *member
	own    int // bytes of an event, by the configuration
	limit  int // by the memory of the watch as well

	mu   sync.Mutex // guards the following fields
	held int64
	over bool // the request has ended
}

func newUnfinished(members []*member, own int) *unfinished {
	own = cmp.Or(own, client.MaxEventBytes)
	limits := make([]int, len(members))
	for i, m := range members {
		limits[i] = m.largest(own)
	}
	limit := slices.Max(limits)
	return &unfinished{member: members[slices.Index(limits, limit)], own: own, limit: cmp.Or(limit, own)}
}

// hold counts bytes that have arrived.
func (u *unfinished) hold(bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return
	}
	u.held += copies * int64(bytes)
	u.member.hold(copies * int64(bytes))
}

// end is called when the request has ended with an error or without one.
func (u *unfinished) end(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	u.member.hold(-u.held)
	if tooLarge(err) && u.limit < u.own {
		u.member.refuse(u.limit)
	}
}
