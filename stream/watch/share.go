package watch

import "time"

// ask is the last request for an open watch.
type ask struct {
	at     time.Duration // see Template.now
	client string        // for which the watch counts while no stream follows it; "": none
}

// making is a watch that is being made.
type making struct {
	client string        // that has asked for it
	done   chan struct{} // closed when that is over
}

// shares says which clients follow the watches of a template. A watch that streams follow counts
// for each client that has one of them, and any other one for the client that has asked for it
// last.
//
// Owned by the holder of the lock around it.
type shares struct {
	names   map[string]map[string]int // streams of each client, by the name of their watch
	streams map[string]int            // by the name of their watch
}

func newShares() shares {
	return shares{names: map[string]map[string]int{}, streams: map[string]int{}}
}

func (s *shares) enter(client, name string) {
	if s.names[client] == nil {
		s.names[client] = map[string]int{}
	}
	s.names[client][name]++
	s.streams[name]++
}

func (s *shares) leave(client, name string) {
	names := s.names[client]
	if names[name]--; names[name] == 0 {
		delete(names, name)
	}
	if len(names) == 0 {
		delete(s.names, client)
	}
	if s.streams[name]--; s.streams[name] == 0 {
		delete(s.streams, name)
	}
}

// Use is a stream of a client that follows a watch of a template.
//
// Static after construction.
type Use struct {
	template     *Template
	client, name string
}

// Use counts the watch for a client that is about to follow it, until the Use is released. It is
// nil for a watch that no template has made. It returns an error if the client has its share
// of the template.
func (w *Watch) Use(client string) (*Use, *FullError) {
	t := w.template
	if t == nil || client == "" {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if full := t.exhausted(client, w.Name()); full != nil {
		return nil, full
	}
	t.shares.enter(client, w.Name())
	return &Use{template: t, client: client, name: w.Name()}, nil
}

// Release ends the use. It is called once.
func (u *Use) Release() {
	u.template.mu.Lock()
	defer u.template.mu.Unlock()
	u.template.shares.leave(u.client, u.name)
}

// asked notes that a client asks for an open watch. It returns an error if nobody else uses the
// watch and the client has its share of the template. t.mu is held.
func (t *Template) asked(w *Watch, client string) error {
	by := client
	if client == "" {
		by = t.opened[w].client
	} else if full := t.exhausted(client, w.Name()); full != nil {
		if !w.InUse() {
			return full // its request would keep the watch
		}
		by = t.opened[w].client
	}
	t.opened[w] = ask{at: t.now(), client: by}
	return nil
}

// exhausted returns an error if as many watches count for a client as may, without the one with
// a name. t.mu is held.
func (t *Template) exhausted(client, name string) *FullError {
	follows := t.shares.names[client]
	if t.config.MaxPerClient == t.config.Max {
		return nil // there is no limit for one client
	}
	if follows[name] > 0 || len(follows)+len(t.opened)+len(t.making) < t.config.MaxPerClient {
		return nil
	}
	n := len(follows)
	for w, last := range t.opened {
		if last.client == client && w.Name() != name && t.keeps(w, last) {
			n++
		}
	}
	for other, m := range t.making {
		if m.client == client && other != name {
			n++
		}
	}
	if n < t.config.MaxPerClient {
		return nil
	}
	return &FullError{Open: n, Max: t.config.MaxPerClient, OfClient: true}
}

// keeps reports whether it is the last request for a watch that keeps it open. t.mu is held.
func (t *Template) keeps(w *Watch, last ask) bool {
	return t.shares.streams[w.Name()] == 0 && (w.InUse() || last.at > t.now()-settle)
}
