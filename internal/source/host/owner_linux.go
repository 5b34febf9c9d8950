package host

import (
	"maps"
	"time"

	"github.com/prometheus/procfs"
)

// ownerAge is how long the user of a process is trusted. A process changes its
// user in its first moments if ever, so its user is read at each poll until it
// has this age. The file with the user is the most expensive of a poll.
const ownerAge = time.Minute

// ownerCache remembers the effective users of processes. Not safe for
// concurrent use.
type ownerCache struct {
	read  func(procfs.Proc) (uid uint64, err error)
	byPID map[int]owner
}

type owner struct {
	uid   uint64
	start time.Time // of the process: ids are reused
	read  time.Time
}

func newOwnerCache() *ownerCache {
	return &ownerCache{read: effectiveUser, byPID: map[int]owner{}}
}

func effectiveUser(p procfs.Proc) (uint64, error) {
	status, err := p.NewStatus()
	return status.UIDs[1], err // real, effective, saved, of the file system
}

// uid returns the effective user of a process that started at start.
func (c *ownerCache) uid(p procfs.Proc, start time.Time) (uint64, error) {
	now := time.Now()
	o, known := c.byPID[p.PID]
	settled := known && o.start.Equal(start) && o.read.Sub(start) >= ownerAge
	if settled && now.Sub(o.read) < ownerAge {
		return o.uid, nil
	}
	uid, err := c.read(p)
	if err != nil {
		return 0, err
	}
	c.byPID[p.PID] = owner{uid: uid, start: start, read: now}
	return uid, nil
}

// forgetOthers forgets the processes that are not in there.
func (c *ownerCache) forgetOthers(there map[int]procfs.Proc) {
	maps.DeleteFunc(c.byPID, func(pid int, _ owner) bool {
		_, ok := there[pid]
		return !ok
	})
}
