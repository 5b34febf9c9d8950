package main

import (
	"net/http"
	"sync"
)

// room is how many events a subscriber may lag behind before it holds up the
// publisher.
const room = 256

// hub holds the subscribers.
type hub struct {
	mu          sync.RWMutex
	subscribers map[*subscriber]bool
}

// subscriber is one request. Its channel is never closed.
type subscriber struct {
	events chan []byte
	gone   <-chan struct{}
}

func newHub() *hub { return &hub{subscribers: map[*subscriber]bool{}} }

func (h *hub) broadcast(event []byte) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.subscribers {
		select {
		case s.events <- event:
		case <-s.gone:
		}
	}
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := &subscriber{events: make(chan []byte, room), gone: r.Context().Done()}
	h.add(s)
	defer h.remove(s)
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case event := <-s.events:
			if _, err := w.Write(event); err != nil {
				return
			}
			flusher.Flush()
		case <-s.gone:
			return
		}
	}
}

func (h *hub) add(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers[s] = true
}

func (h *hub) remove(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subscribers, s)
}
