package main

import "time"

// plan defines how much is measured.
type plan struct {
	runs        int
	subscribers int           // of the comparison
	sizes       []int         // bytes of an event, for the phase at a rate
	rate        int           // events a second in that phase
	seconds     time.Duration // of each phase under load
	window      int           // events that a publisher may be ahead, as fast as possible
	settle      time.Duration // between connecting and measuring memory
	idle        time.Duration // how long idle connections are then left alone; 0: not
	alone       int           // events to a single subscriber
	resources   int           // of the snapshots
	bytes       int           // of each of them
	storms      []int         // subscribers that want the snapshot at the same time
	resumes     int           // subscribers that reconnect at the same time
	changes     int           // changes that they have missed
	crowd       []int         // idle subscribers, in growing numbers
	hold        time.Duration // how long the last of them is held
	slow        bool          // include servers that take minutes
}

// full is the plan without flags.
func full() plan {
	return plan{
		runs: 3, subscribers: 10_000, sizes: []int{200, 1024}, rate: 10, seconds: 10 * time.Second, window: 1000,
		settle: 5 * time.Second, idle: 2 * time.Minute, alone: 500,
		resources: 100_000, bytes: 300, storms: []int{1, 100, 1000}, resumes: 10_000, changes: 1000,
		crowd: []int{1000, 5000, 10_000, 19_000}, hold: 10 * time.Minute, slow: true,
	}
}

// quick is enough to show whether a change was an improvement.
func (p plan) quick() plan {
	p.runs, p.sizes, p.seconds = 1, p.sizes[:1], 3*time.Second
	p.settle, p.idle, p.alone = 3*time.Second, 0, 100
	p.storms = []int{1, 100}
	p.crowd, p.hold = []int{1000, 10_000}, 5*time.Second
	p.slow = false
	return p
}
