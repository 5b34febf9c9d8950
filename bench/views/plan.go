package main

import "time"

// options are the flags.
type options struct {
	plan     plan
	only     string
	before   string
	profiles string
}

// plan defines how much is measured.
type plan struct {
	subscribers     int           // of the view that they share
	shared          int           // commits to them in a round
	rounds          int           // of what is measured alternately
	views           int           // different ones, with a subscriber each
	resources       int           // of the watch that they are views of
	commits         int           // under those views
	interval        time.Duration // between two of these commits
	settle          time.Duration // between connecting and the measurement of an idle gateway
	heartbeat       time.Duration // as the gateway is configured
	scans           []int         // numbers of views without an index, the last of which has the target
	held            int           // views whose memory is measured
	large           int           // resources of the watch of which a view is built
	followers       int           // subscribers of that watch
	builds          int           // of its views, with nothing else going on
	turns           int           // with such views and without
	phase           time.Duration // of a turn
	windows         int           // streams of a window each
	whole           int           // streams of the whole watch, which stand for as many
	changes         int           // a second, under either
	windowed        time.Duration // that either is measured for
	lists           int           // in a round, and so on
	polls           int
	streams         int // subscribers
	events          int // to each of them
	requests        int // in a turn, with each kind of credential
	turnsOfRequests int // of which the first does not count
}

// full is the plan without flags.
func full() plan {
	return plan{
		subscribers: 10_000, shared: 40, rounds: 3,
		views: 10_000, resources: 10_000, commits: 2000, interval: 7500 * time.Microsecond, settle: 3 * time.Second, heartbeat: 15 * time.Second,
		scans: []int{1, 100, 1000}, held: 10_000,
		large: 100_000, followers: 100, builds: 5, turns: 5, phase: 2 * time.Second,
		windows: 10_000, whole: 50, changes: 1000, windowed: 10 * time.Second,
		lists: 200, polls: 500, streams: 2000, events: 60,
		requests: 250, turnsOfRequests: 41,
	}
}

// quick shows that everything works.
func (p plan) quick() plan {
	p.subscribers, p.shared, p.rounds = 1000, 20, 1
	p.views, p.resources, p.commits, p.settle, p.heartbeat = 1000, 1000, 400, time.Second, 3*time.Second
	p.scans, p.held = []int{1, 20, 200}, 1000
	p.large, p.turns, p.phase = 10_000, 1, time.Second
	p.windows, p.whole, p.changes, p.windowed = 1000, 10, 500, 2*time.Second
	p.lists, p.polls, p.streams, p.events, p.requests, p.turnsOfRequests = 50, 100, 200, 20, 100, 6
	return p
}
