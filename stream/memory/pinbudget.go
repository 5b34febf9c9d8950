package memory

// Supersede counts n more bytes that only readers of older versions hold.
func (a *Account) Supersede(n int64) {
	if a != nil {
		a.give(supersededPool, -n)
	}
}

// leastPinned is how much the readers of older versions may always hold of a log
// without a ceiling.
const leastPinned = 64 << 20

// Relieve takes pins away, oldest first, until what the logs hold fits, older
// versions included. Under the shared ceiling it takes them where the most is held.
// Without any ceiling, older versions may hold as much as the log itself.
func (a *Account) Relieve(p Pins, log int64) {
	if !a.limited() {
		for p.Held() > max(leastPinned, log) && p.TakeOldest() {
		}
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

func (a *Account) limited() bool { return a != nil && a.own.Bytes()+a.shared.Bytes() > 0 }

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
