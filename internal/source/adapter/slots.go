package adapter

import (
	"context"
	"sync"
)

// slots bounds how many operations run at a time, in all and for each client. An operation beyond the
// share of its client waits without a slot, so that it delays no other client.
//
// Safe for concurrent use.
type slots struct {
	all   chan struct{} // has a value for each operation that runs
	share int

	mu      sync.Mutex
	clients map[string]*clientSlots // those with operations that run or wait
}

type clientSlots struct {
	taken chan struct{} // has a value for each operation that runs, or waits for the others only
	users int           // operations that run or wait; guarded by slots.mu
}

func newSlots(most, share int) *slots {
	return &slots{all: make(chan struct{}, most), share: share, clients: map[string]*clientSlots{}}
}

// acquire waits for a slot, or until ctx is done.
func (s *slots) acquire(ctx context.Context, client string) (release func(), err error) {
	own := s.enter(client)
	select {
	case own.taken <- struct{}{}:
	case <-ctx.Done():
		s.leave(client, own)
		return nil, ctx.Err()
	}
	select {
	case s.all <- struct{}{}:
	case <-ctx.Done():
		<-own.taken
		s.leave(client, own)
		return nil, ctx.Err()
	}
	return func() {
		<-s.all
		<-own.taken
		s.leave(client, own)
	}, nil
}

func (s *slots) enter(client string) *clientSlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.clients[client]
	if own == nil {
		own = &clientSlots{taken: make(chan struct{}, s.share)}
		s.clients[client] = own
	}
	own.users++
	return own
}

// leave forgets a client with its last operation.
func (s *slots) leave(client string, own *clientSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.clients, client)
	}
}
