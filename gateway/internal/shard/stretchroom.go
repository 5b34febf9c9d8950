package shard

import (
	"sync"
	"sync/atomic"
)

// stretchRoom bounds the memory and the number of the files of stretches. A file takes room until it is closed. There is
// a separate room for the files that only late streams hold, so that streams that take next to nothing leave the room for
// new stretches to the others.
//
// All methods may be called from any goroutine.
type stretchRoom struct {
	most, mostLate fileUse // static after construction

	mu    sync.Mutex // guards the following fields
	all   fileUse    // without those of late streams
	alone fileUse    // the ones among these of stretches that only one client has asked for
	late  fileUse
}

// fileUse is what files take.
type fileUse struct {
	files int
	bytes int64
}

// stretchShare is what the file of one stretch takes of the room.
type stretchShare struct {
	shared atomic.Bool // several clients have asked for the stretch; written with the mutex of the room held

	// Guarded by the mutex of the room.
	bytes int64 // 0: it is closed, or not open yet
	late  bool
}

const (
	// filePage is the unit in which the memory of a file is allocated.
	filePage = 4 << 10
	// fileOverhead is what a file and its stretch take beside the pages.
	fileOverhead = 4 << 10
)

// newStretchRoom returns the room for files of so many bytes, of which late streams hold half as many beside that. files is
// the most in all.
func newStretchRoom(bytes int64, files int) stretchRoom {
	return stretchRoom{most: fileUse{files - files/4, bytes}, mostLate: fileUse{files / 4, bytes / 2}}
}

// plus returns what files take if n more take some bytes.
func (u fileUse) plus(n int, bytes int64) fileUse {
	return fileUse{u.files + n, u.bytes + int64(n)*bytes}
}

// within reports whether it is no more than that, divided by a number.
func (u fileUse) within(most fileUse, by int) bool {
	return u.files <= most.files/by && u.bytes <= most.bytes/int64(by)
}

// enter takes room for a file in which size bytes are written. It returns false if there is none.
func (r *stretchRoom) enter(one *stretchShare, size int) bool {
	bytes := int64((size+filePage-1)/filePage)*filePage + fileOverhead
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.all.plus(1, bytes).within(r.most, 1) || !one.shared.Load() && !r.alone.plus(1, bytes).within(r.most, 2) {
		return false
	}
	one.bytes = bytes
	r.count(one, 1)
	return true
}

// count adds a file n times. r.mu is held.
func (r *stretchRoom) count(one *stretchShare, n int) {
	if one.late {
		r.late = r.late.plus(n, one.bytes)
		return
	}
	r.all = r.all.plus(n, one.bytes)
	if !one.shared.Load() {
		r.alone = r.alone.plus(n, one.bytes)
	}
}

// share records that another client has asked for the stretch.
func (r *stretchRoom) share(one *stretchShare) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(one, -1)
	one.shared.Store(true)
	r.count(one, 1)
}

// leave frees what a file takes that is closed.
func (r *stretchRoom) leave(one *stretchShare) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(one, -1)
	one.bytes = 0
}

// holds reports whether a file still takes room. If late is true, it moves to the room for late streams.
func (r *stretchRoom) holds(one *stretchShare, late bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.bytes > 0 && late && !one.late {
		r.count(one, -1)
		one.late = true
		r.count(one, 1)
	}
	return one.bytes > 0
}

// crowdedBy reports whether late streams hold too much, and this file is a part of it.
func (r *stretchRoom) crowdedBy(one *stretchShare) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return one.bytes > 0 && one.late && !r.late.within(r.mostLate, 1)
}

// now returns what all files take.
func (r *stretchRoom) now() fileUse {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fileUse{r.all.files + r.late.files, r.all.bytes + r.late.bytes}
}
