package main

import (
	"reflect"
	"testing"
	"time"
	"unsafe"
)

func options() Options {
	return Options{
		Clients: 10_000, Replicas: 5, Regions: 3, Limit: 1100, Seed: 1,
		Retry: 2 * time.Second, DrainDelay: 2 * time.Second, Drain: 10 * time.Second, Restart: 3 * time.Second,
		Probe: 500 * time.Millisecond, Failover: 30 * time.Second, Patience: 30 * time.Second, Silence: 37500 * time.Millisecond,
		Connect: 74 * time.Microsecond / 2, Rate: 1e9, Snapshot: 60e3, Resume: 8e3,
	}
}

// scenarios are what may happen to settled clients, and the time by which all are in sync.
var scenarios = map[string]struct {
	settled bool
	happen  func(*Crowd)
	bound   time.Duration
}{
	"deployment": {true, func(s *Crowd) { s.Deploy(1) }, 15*16*time.Second + 30*time.Second},
	"region":     {true, func(s *Crowd) { s.LoseRegion(0) }, 3 * time.Minute},
	"upstream":   {true, func(s *Crowd) { s.LoseUpstream(20*time.Second, 60e3) }, 80 * time.Second},
	"herd":       {false, func(s *Crowd) { s.Herd() }, 30 * time.Second},
}

func TestNobodyIsLost(t *testing.T) {
	for name, c := range scenarios {
		t.Run(name, func(t *testing.T) {
			s := New(options())
			if c.settled {
				s.Settle()
			}
			c.happen(s)
			if !s.Run(c.bound) {
				t.Fatalf("%d of %d are in sync after %v", s.current.InSync, s.o.Clients, c.bound)
			}
			if s.Most > s.o.Limit {
				t.Errorf("a gateway had %d streams, of %d at most", s.Most, s.o.Limit)
			}
			open := 0
			for _, r := range s.replicas {
				if r.up {
					open += r.open
				}
			}
			if open != s.o.Clients || s.current.Open != open {
				t.Errorf("%d streams are open, counted as %d, want %d", open, s.current.Open, s.o.Clients)
			}
			for _, second := range s.Seconds {
				if most := s.o.Rate * float64(len(s.replicas)); second.Bytes > most {
					t.Errorf("%.0f bytes were sent in a second, of %.0f at most", second.Bytes, most)
				}
			}
			synced := 0
			for _, n := range s.Synced {
				synced += n
			}
			if synced < s.o.Clients/3 {
				t.Errorf("%d came back, want at least a third", synced)
			}
		})
	}
}

// A client that a deployment moves several times waits for its retry hint each time, and
// not longer from move to move.
func TestMovesDoNotAddUp(t *testing.T) {
	o := options()
	o.Limit = o.Clients
	s := New(o)
	s.Settle()
	s.Deploy(1)
	if most := 40; !s.Run(15*16*time.Second+30*time.Second) || len(s.Synced) > most {
		t.Errorf("the longest gap took %d tenths of a second, want at most %d", len(s.Synced), most)
	}
}

func TestOneSeedIsOneRun(t *testing.T) {
	run := func(seed uint64) []Second {
		o := options()
		o.Seed = seed
		s := New(o)
		s.Settle()
		s.LoseRegion(1)
		s.Run(3 * time.Minute)
		return s.Seconds
	}
	if first := run(1); !reflect.DeepEqual(first, run(1)) || reflect.DeepEqual(first, run(2)) {
		t.Error("want the same run for the same seed, and another one for another")
	}
}

// Without room for everybody the limit holds, and as many as it allows are served.
func TestLimitHoldsWithoutRoom(t *testing.T) {
	o := options()
	o.Limit = 600
	s := New(o)
	s.Herd()
	if s.Run(2*time.Minute) || s.Most != o.Limit || s.current.InSync < 15*600*99/100 {
		t.Errorf("%d in sync, at most %d with one gateway", s.current.InSync, s.Most)
	}
}

func TestBytesOfAClient(t *testing.T) {
	if size := unsafe.Sizeof(client{}); size > 64 {
		t.Errorf("a client takes %d bytes, want at most 64", size)
	}
}

// A wait may be longer than the wheel is round.
func TestLongWaitsAreWaited(t *testing.T) {
	o := options()
	o.Clients, o.Replicas, o.Regions, o.Snapshot = 1000, 1, 1, 0.3*o.Rate
	s := New(o)
	s.Herd()
	if !s.Run(time.Hour) || len(s.Synced) < 2990 {
		t.Errorf("%d were in sync within %d tenths of a second, want all after 300 s", s.current.InSync, len(s.Synced))
	}
}
