package main

// plan defines how much is measured.
type plan struct {
	streams    int // of the view that changes
	principals int // that they belong to
	resources  int // of the watch
	differ     int // that leave the view in a reload, and as many that enter it
	rounds     int // reloads
}

// full is the plan without flags.
func full() plan {
	return plan{streams: 10_000, principals: 5, resources: 1000, differ: 50, rounds: 6}
}

// quick shows that everything works.
func (p plan) quick() plan {
	p.streams, p.resources, p.differ, p.rounds = 200, 100, 5, 2
	return p
}
