package memory

// Supersede counts n more bytes that only readers of older versions hold.
func (a *Account) Supersede(n int64) {
	if a != nil {
		a.give(supersededPool, -n)
	}
}

// leastPinned is how much the readers of older versions may always hold of a log
// that is within its ceilings.
const leastPinned = 16 << 20

// Relieve takes pins away, oldest first, until what the logs hold fits, older
// versions included. Whatever the ceilings allow, older versions and the superseded
// entries of the log together hold no more than its live entries, so that all of it is at
// most twice what is served, and one older version beyond that. Under the shared ceiling it takes
// them where the most is held.
func (a *Account) Relieve(p Pins, live, dead int64) {
	p.TakeSurplus(max(leastPinned, live-dead))
	if a == nil {
		return
	}
	for a.own.Swollen() && p.TakeOldest() {
	}
	for a.shared.Swollen() && a.shared.TakeOldest() {
	}
}

// TakeOldest takes the oldest version that holds memory away from its readers, where the
// most is held. It returns false if there is none.
func (m *Ceiling) TakeOldest() bool {
	most := m.mostPinned()
	return most != nil && most.TakeOldest()
}

// EraBytes is how many bytes are added to and dropped from a log of size log in one
// era: few compared to what older versions may hold.
func (a *Account) EraBytes(log int64) int64 {
	const share = 64
	most := max(leastPinned, log)
	if a != nil && a.own.Bytes() > 0 {
		most = min(most, a.own.Bytes())
	}
	if a != nil && a.shared.Bytes() > 0 {
		most = min(most, a.shared.Bytes())
	}
	return most / share
}

// TailBytes is how much of a log's tail compaction leaves alone: at most most, less
// under a small ceiling. Superseded frames, each of which may waste half a slab, would
// use up all that the ceiling allows for superseded data.
func (a *Account) TailBytes(most int64) int64 {
	if a == nil || a.own.Bytes() == 0 {
		return most
	}
	return min(most, a.own.Bytes()/16)
}
