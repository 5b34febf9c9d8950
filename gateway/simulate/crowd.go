package main

import (
	"math/rand/v2"
	"time"

	api "github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/gateway/internal/limits"
	"github.com/watchtide/watchtide/stream/watch"
)

// Options describe the clients, and the gateways behind proxies that look at them.
type Options struct {
	Clients  int
	Replicas int // gateways of one region
	Regions  int
	Limit    int // most streams of a gateway
	Seed     uint64

	Retry, DrainDelay, Drain time.Duration // as in the configuration
	Restart                  time.Duration // from the last stream to readiness
	Probe                    time.Duration // of the proxies
	Failover                 time.Duration // until clients of a lost region reach another one
	Patience                 time.Duration // of a client, for an answer
	Silence                  time.Duration // after which a client notices that nothing comes

	Connect  time.Duration // CPU time of a gateway for a new stream, divided by its cores
	Rate     float64       // bytes that a gateway sends in a second
	Snapshot float64       // bytes of one
	Resume   float64       // bytes of what a client has missed that comes back
}

// replica is a gateway as its proxy and its clients see it.
type replica struct {
	up, draining bool
	routed       bool // the proxy sends clients to it
	open         int
	cpu, network float64 // ms: when what it has begun is done
}

// Second is what happened in one second, and the state at its end.
type Second struct {
	Open, InSync, Attempts, Refused int
	Bytes                           float64
}

// Crowd is one simulation. Owned by one goroutine.
type Crowd struct {
	o        Options
	limits   limits.Limits
	random   *rand.Rand
	now      int32 // ms
	wheel    wheel
	replicas []replica
	routes   [][]int16 // of each region: the gateways that its proxy knows as ready
	lost     []bool    // regions
	over     []bool    // regions whose clients go elsewhere
	orders   map[int32][]func()
	ordered  int32     // ms: the last order
	sent     []float64 // bytes, by the second at which the last of them leaves
	current  Second

	Seconds []Second
	// Synced has how many times a client came back in sync after so many tenths of a second.
	Synced []int
	// Most is the largest number of streams that a gateway had.
	Most int
}

// New returns clients without streams, and gateways that are ready.
func New(o Options) *Crowd {
	n := o.Replicas * o.Regions
	s := &Crowd{
		o: o, limits: limits.Limits{Total: o.Limit}, random: rand.New(rand.NewPCG(o.Seed, 0)), wheel: newWheel(o.Clients),
		replicas: make([]replica, n), routes: make([][]int16, o.Regions), lost: make([]bool, o.Regions), over: make([]bool, o.Regions),
		orders: map[int32][]func(){},
	}
	for i := range s.replicas {
		s.replicas[i] = replica{up: true, routed: true}
	}
	s.route()
	return s
}

// Settle gives each client a stream, in sync, with the gateways of its region in turn.
func (s *Crowd) Settle() {
	for at := range s.wheel.clients {
		region, turn := at%s.o.Regions, at/s.o.Regions%s.o.Replicas
		c, to := &s.wheel.clients[at], region*s.o.Replicas+turn
		c.replica, c.state, c.has, c.opened = int16(to), inSync, true, -int32(api.Healthy.Milliseconds())
		s.replicas[to].open++
		s.current.Open++
		s.current.InSync++
	}
}

// At executes an order after the given time from now.
func (s *Crowd) At(after time.Duration, order func()) {
	at := s.now + 1 + int32(after.Milliseconds())
	s.orders[at] = append(s.orders[at], order)
	s.ordered = max(s.ordered, at)
}

// Run simulates until all clients are in sync and nothing is ordered, or for the given
// time. It reports whether all are in sync.
func (s *Crowd) Run(most time.Duration) bool {
	for end := s.now + int32(most.Milliseconds()); s.now < end; {
		s.now++
		for _, order := range s.orders[s.now] {
			order()
		}
		delete(s.orders, s.now)
		for at := s.wheel.pop(s.now); at != none; at = s.wheel.pop(s.now) {
			s.step(at)
		}
		if s.now%1000 != 0 {
			continue
		}
		if second := int(s.now/1000) - 1; second < len(s.sent) {
			s.current.Bytes = s.sent[second]
		}
		s.Seconds = append(s.Seconds, s.current)
		s.current.Attempts, s.current.Refused, s.current.Bytes = 0, 0, 0
		if s.now > s.ordered && s.current.InSync == s.o.Clients {
			return true
		}
	}
	return false
}

func (s *Crowd) step(at int32) {
	c := &s.wheel.clients[at]
	switch c.state {
	case away:
		s.attempt(at)
	case waiting:
		s.leave(c)
		s.back(at, api.End{})
	case opening:
		if c.ready > s.now {
			s.wheel.schedule(at, s.now, time.Duration(c.ready-s.now)*time.Millisecond)
			return
		}
		c.state, c.has = inSync, true
		s.current.InSync++
		s.synced(s.now - c.lost)
	case leaving:
		s.dismiss(at)
	}
}

func (s *Crowd) synced(took int32) {
	tenths := int(took / 100)
	for len(s.Synced) <= tenths {
		s.Synced = append(s.Synced, 0)
	}
	s.Synced[tenths]++
}

func (s *Crowd) hint() time.Duration { return limits.RetryHint(s.o.Retry, s.random.Float64()) }

// back makes a client try again by its rule.
func (s *Crowd) back(at int32, end api.End) {
	c := &s.wheel.clients[at]
	failures := api.Failures(int(c.failures), end)
	c.failures, c.state = uint8(min(failures, 255)), away
	s.wheel.schedule(at, s.now, api.Backoff(end, failures, s.random.Float64()))
}

// dismiss ends the stream of a client with a goodbye, if it has begun.
func (s *Crowd) dismiss(at int32) {
	c := &s.wheel.clients[at]
	end := api.End{Asked: s.hint()}
	if c.state != waiting {
		end.Lasted, end.Goodbye = time.Duration(s.now-c.opened)*time.Millisecond, "draining"
	}
	s.unsync(c)
	s.leave(c)
	s.back(at, end)
}

func (s *Crowd) unsync(c *client) {
	if c.state == inSync || c.state == leaving {
		c.lost = s.now
		s.current.InSync--
	}
}

func (s *Crowd) leave(c *client) {
	s.replicas[c.replica].open--
	s.current.Open--
	c.replica = none
}

// attempt connects a client, if its proxy finds a gateway.
func (s *Crowd) attempt(at int32) {
	s.current.Attempts++
	to := s.choose(int(at) % s.o.Regions)
	if to == none {
		s.back(at, api.End{})
		return
	}
	c, r := &s.wheel.clients[at], &s.replicas[to]
	now := float64(s.now)
	r.cpu = max(now, r.cpu) + ms(s.o.Connect)
	if why := s.limits.Refuses(limits.Open{Draining: r.draining, Total: r.open}); why != "" {
		s.current.Refused++
		s.back(at, api.End{Asked: why.Retry(s.hint())})
		return
	}
	r.open++
	s.Most = max(s.Most, r.open)
	s.current.Open++
	c.replica, c.opened = to, s.now
	if r.cpu-now > ms(s.o.Patience) {
		c.state = waiting
		s.wheel.schedule(at, s.now, s.o.Patience)
		return
	}
	bytes := s.o.Resume
	if !c.has {
		bytes = s.o.Snapshot
	}
	s.send(at, bytes, r.cpu)
}

// send makes a client in sync once its gateway has sent it what it lacks.
func (s *Crowd) send(at int32, bytes, from float64) {
	c := &s.wheel.clients[at]
	r := &s.replicas[c.replica]
	r.network = max(r.network, from) + bytes/s.o.Rate*1000
	second := int(r.network / 1000)
	for len(s.sent) <= second {
		s.sent = append(s.sent, 0)
	}
	s.sent[second] += bytes
	c.state, c.ready = opening, int32(r.network)+1
	s.wheel.schedule(at, s.now, time.Duration(c.ready-s.now-1)*time.Millisecond)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// choose returns the gateway that the proxy of a region sends a client to: of two at
// random the one with fewer streams. A proxy that is refused a connection tries again.
func (s *Crowd) choose(home int) int16 {
	if s.lost[home] {
		if !s.over[home] {
			return none
		}
		home = (home + 1 + s.random.IntN(s.o.Regions-1)) % s.o.Regions
	}
	ready := s.routes[home]
	for range 3 {
		if len(ready) == 0 {
			return none
		}
		a, b := ready[s.random.IntN(len(ready))], ready[s.random.IntN(len(ready))]
		if s.replicas[b].open < s.replicas[a].open {
			a = b
		}
		if s.replicas[a].up && !s.replicas[a].draining {
			return a
		}
	}
	return none
}

func (s *Crowd) route() {
	for region := range s.routes {
		s.routes[region] = s.routes[region][:0]
		for i := range s.o.Replicas {
			if at := region*s.o.Replicas + i; s.replicas[at].routed {
				s.routes[region] = append(s.routes[region], int16(at))
			}
		}
	}
}

// routeLater makes the proxy notice whether a gateway is ready.
func (s *Crowd) routeLater(at int, ready bool) {
	s.At(s.o.Probe, func() {
		s.replicas[at].routed = ready
		s.route()
	})
}

// Deploy restarts all gateways, so many at a time.
func (s *Crowd) Deploy(atOnce int) {
	for first := 0; first < len(s.replicas); first += atOnce {
		turn := time.Duration(first/atOnce) * (s.o.DrainDelay + s.o.Drain + s.o.Restart + s.o.Probe)
		for at := first; at < min(first+atOnce, len(s.replicas)); at++ {
			s.At(turn, func() { s.drain(at) })
		}
	}
}

func (s *Crowd) drain(at int) {
	s.routeLater(at, false)
	s.At(s.o.DrainDelay, func() {
		s.replicas[at].draining = true
		streams := 0
		s.each(at, func(i int32) {
			if s.wheel.clients[i].state == inSync {
				streams++
			}
		})
		s.each(at, func(i int32) {
			if c := &s.wheel.clients[i]; c.state == inSync {
				c.state = leaving
				s.wheel.schedule(i, s.now, limits.GoodbyeDelay(s.o.Drain, streams, s.random.Float64()))
			}
		})
	})
	s.At(s.o.DrainDelay+s.o.Drain+time.Millisecond, func() {
		s.each(at, s.dismiss)
		s.replicas[at].up = false
	})
	s.At(s.o.DrainDelay+s.o.Drain+s.o.Restart, func() {
		s.replicas[at] = replica{up: true}
		s.routeLater(at, true)
	})
}

func (s *Crowd) each(replica int, do func(client int32)) {
	for i := range s.wheel.clients {
		if int(s.wheel.clients[i].replica) == replica {
			do(int32(i))
		}
	}
}

// LoseRegion ends a region: its clients notice it when nothing has come for too long.
func (s *Crowd) LoseRegion(region int) {
	s.lost[region] = true
	s.At(s.o.Failover, func() { s.over[region] = true })
	beat := s.o.Silence * 2 / 5
	for i := region * s.o.Replicas; i < (region+1)*s.o.Replicas; i++ {
		s.replicas[i].up = false
	}
	for i := range s.wheel.clients {
		c := &s.wheel.clients[i]
		if c.replica == none || int(c.replica)/s.o.Replicas != region {
			continue
		}
		s.unsync(c)
		c.state = waiting
		s.wheel.schedule(int32(i), s.now, s.o.Silence-time.Duration(s.random.Float64()*float64(beat)))
	}
}

// LoseUpstream makes all watches stale until each gateway has tried again, once the
// upstream is back. Then everybody is sent so many bytes.
func (s *Crowd) LoseUpstream(down time.Duration, bytes float64) {
	back := s.now + int32(down.Milliseconds())
	for i := range s.wheel.clients {
		if c := &s.wheel.clients[i]; c.state == inSync {
			s.unsync(c)
			c.state = opening
		}
	}
	for at := range s.replicas {
		s.reach(at, 1, back, bytes)
	}
}

// reach makes a gateway try to reach the upstream again.
func (s *Crowd) reach(at, failures int, back int32, bytes float64) {
	s.At(watch.Backoff{}.Wait(failures, s.random.Float64()), func() {
		if s.now < back {
			s.reach(at, failures+1, back, bytes)
			return
		}
		s.each(at, func(i int32) {
			if c := &s.wheel.clients[i]; c.state == opening {
				s.send(i, bytes, float64(s.now))
			}
		})
	})
}

// Herd makes all clients connect within a second.
func (s *Crowd) Herd() {
	for i := range s.wheel.clients {
		s.wheel.clients[i].lost = s.now
		s.wheel.schedule(int32(i), s.now, time.Duration(s.random.Float64()*float64(time.Second)))
	}
}
