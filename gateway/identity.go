package gateway

import (
	"net/netip"
	"strconv"
	"time"
)

// identity says whose stream one is, for those who look at the list of
// subscribers. It has no pointers: very many lie in tables.
type identity struct {
	stamp int64 // when the stream began, see nanosOf; no two have the same
	origin
}

// origin says where a stream comes from.
type origin struct {
	address [16]byte // all zero: unknown
	port    uint16   // 0: unknown
	agent   int32    // number of the user agent, counted from 1; 0: the client names none
}

func originOf(from netip.AddrPort) (o origin) {
	if from.Addr().IsValid() {
		o.address, o.port = from.Addr().As16(), from.Port()
	}
	return o
}

// id names the stream, in this process.
func (i identity) id() string { return strconv.FormatInt(i.stamp, 36) }

// since is when the stream began, by the wall clock as it is now. What it was
// slewed by since then is left out: the same time is shown whenever it is asked for.
func (i identity) since(now time.Time) time.Time {
	set := now.Round(0).Sub(timeOf(nanosOf(now)).Round(0))
	if set.Abs() < time.Second {
		set = 0
	}
	return timeOf(i.stamp).Add(set)
}

// from is the address, with the port if it is known; empty where it has none.
func (o origin) from() string {
	switch a := netip.AddrFrom16(o.address).Unmap(); {
	case o.address == [16]byte{}:
		return ""
	case o.port == 0:
		return a.String()
	default:
		return netip.AddrPortFrom(a, o.port).String()
	}
}

// delivered is what a stream was sent so far.
type delivered struct {
	events  uint64
	bytes   uint64 // of events
	skipped uint64 // changes that it did not see one by one
}

// plus may wrap, as minus may: what a member of a group was sent is what the group
// was, and a difference that stays.
func (d delivered) plus(o delivered) delivered {
	return delivered{d.events + o.events, d.bytes + o.bytes, d.skipped + o.skipped}
}

func (d delivered) minus(o delivered) delivered {
	return delivered{d.events - o.events, d.bytes - o.bytes, d.skipped - o.skipped}
}
