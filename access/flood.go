package access

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits within a window: how many entries are written for one network and for all of them, and
// how many networks are told apart.
const (
	floodWindow   = time.Minute
	mostOfNetwork = 10
	mostOfAll     = 300
	mostNetworks  = 100
)

// flood limits the entries about denials without a principal. It tells apart a limited number
// of networks.
type flood struct {
	mu sync.Mutex // guards the following fields
	// ends is the timer of the window; nil: there is none.
	ends     *time.Timer
	written  int // in the window
	networks map[netip.Addr]*denials
	others   uint64 // entries of networks that are not told apart
}

// denials are the denials of one network.
type denials struct {
	written int
	counted uint64
}

// admits reports whether an entry is to be written. Otherwise it is counted, and over is called
// at the end of the window.
func (f *flood) admits(e AuditEntry, over func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends == nil {
		f.ends = time.AfterFunc(floodWindow, over)
		f.networks = map[netip.Addr]*denials{}
	}
	from := network(e.Address)
	d := f.networks[from]
	switch {
	case d == nil && len(f.networks) == mostNetworks:
		f.others++
		return false
	case d == nil:
		d = &denials{}
		f.networks[from] = d
	}
	if d.written == mostOfNetwork || f.written == mostOfAll {
		d.counted++
		return false
	}
	d.written++
	f.written++
	return true
}

// sums ends the window, and returns an entry for each network whose entries were counted.
func (f *flood) sums() (out []AuditEntry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends == nil {
		return nil
	}
	f.ends.Stop()
	for from, d := range f.networks {
		if d.counted > 0 {
			out = append(out, AuditEntry{Decision: Denied, Action: Repeated, Address: from, Count: d.counted})
		}
	}
	slices.SortFunc(out, func(a, b AuditEntry) int { return cmp.Or(cmp.Compare(b.Count, a.Count), a.Address.Compare(b.Address)) })
	if f.others > 0 {
		out = append(out, AuditEntry{Decision: Denied, Action: Repeated, Count: f.others})
	}
	f.ends, f.written, f.networks, f.others = nil, 0, nil, 0
	return out
}

// network returns the address for which denials are counted: an IPv6 client can choose the
// last half of its address.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); err == nil && a.Is6() {
		return p.Addr()
	}
	return a
}
