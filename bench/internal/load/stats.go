package load

// Stats are the sums of a Client's connections, or their increase since some
// other Stats.
type Stats struct {
	Bytes  uint64 `json:"bytes"`  // read, heads and framing included
	Reads  uint64 `json:"reads"`  // calls of the system that returned bytes
	Events uint64 `json:"events"` // markers seen

	Connected uint64 `json:"connected"` // connections made
	Answered  uint64 `json:"answered"`  // of them, those that got an answer
	Done      uint64 `json:"done"`      // of them, those that were done
	Refused   uint64 `json:"refused"`   // answers with a status other than 200
	Lost      uint64 `json:"lost"`      // connections that ended unexpectedly, or could not be made
}

// Since returns the increase since earlier Stats.
func (s Stats) Since(earlier Stats) Stats {
	return Stats{
		Bytes: s.Bytes - earlier.Bytes, Reads: s.Reads - earlier.Reads, Events: s.Events - earlier.Events,
		Connected: s.Connected - earlier.Connected, Answered: s.Answered - earlier.Answered,
		Done: s.Done - earlier.Done, Refused: s.Refused - earlier.Refused, Lost: s.Lost - earlier.Lost,
	}
}
