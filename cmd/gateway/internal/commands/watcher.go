package commands

import "time"

const (
	// settle is how long no file may change before the files are read: several are often
	// written one after the other.
	settle = 200 * time.Millisecond
	// patience is the longest time to wait for that.
	settlePatience = 2 * time.Second
	// every is the time between two checks without hints.
	every = 10 * time.Second
)

// Watcher tells when files have changed. It has a goroutine of its own, and those of the
// hints.
//
// All methods may be called from any goroutine.
type Watcher struct {
	// Static after construction.
	open    func() hints
	follow  chan Contents
	changed chan struct{} // 1 slot
	over    chan struct{} // closed by Close
	done    chan struct{} // closed when the goroutine has ended

	// Owned by the goroutine.
	known  Contents
	hints  hints               // nil: there are none
	names  map[string]struct{} // on the way to the files
	first  time.Time           // when a name was touched that has not been looked at; zero: none was
	settle *time.Timer
}

// newFileWatcher returns a watcher without files. It must be closed.
func newFileWatcher() *Watcher { return newWatcher(notify) }

func newWatcher(open func() hints) *Watcher {
	w := &Watcher{
		open: open, follow: make(chan Contents), changed: make(chan struct{}, 1),
		over: make(chan struct{}), done: make(chan struct{}), settle: time.NewTimer(time.Hour),
	}
	w.settle.Stop()
	go w.run()
	return w
}

// Follow replaces the watched files. If their content differs from c already, they have
// changed. c must not be modified after that.
func (w *Watcher) Follow(c Contents) {
	select {
	case w.follow <- c:
	case <-w.done:
	}
}

// Changed signals that the content of the files differs from the last known one.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Close ends the watcher, and waits for its goroutines.
func (w *Watcher) Close() {
	close(w.over)
	<-w.done
}

func (w *Watcher) run() {
	defer close(w.done)
	defer w.closeHints()
	poll := time.NewTicker(every)
	defer poll.Stop()
	for {
		select {
		case <-w.over:
			return
		case w.known = <-w.follow:
			w.renew()
			w.look()
		case name := <-w.touched():
			if _, ours := w.names[name]; ours || name == "" {
				w.touch()
			}
		case <-w.settle.C:
			w.look()
		case <-poll.C:
			if !w.known.equal(w.known.now()) {
				w.touch()
			}
		}
	}
}

func (w *Watcher) touched() <-chan string {
	if w.hints == nil {
		return nil
	}
	return w.hints.touched()
}

// touch makes the watcher check the files once they have settled.
func (w *Watcher) touch() {
	if w.first.IsZero() {
		w.first = time.Now()
	}
	w.settle.Reset(min(settle, settlePatience-time.Since(w.first)))
}

// look checks the files, and signals a change.
func (w *Watcher) look() {
	w.first = time.Time{}
	found := w.known.now()
	if w.known.equal(found) {
		return
	}
	w.known = found
	w.renew()
	w.touch() // there were no hints in between
	select {
	case w.changed <- struct{}{}:
	default: // it was not received yet
	}
}

// renew asks for hints again: the links on the way to the files may have changed.
func (w *Watcher) renew() {
	w.closeHints()
	w.names = map[string]struct{}{}
	for name := range w.known {
		steps(name, w.names)
	}
	if w.hints = w.open(); w.hints == nil {
		return
	}
	for dir := range directoriesOf(w.names) {
		w.hints.add(dir)
	}
}

func (w *Watcher) closeHints() {
	if w.hints != nil {
		w.hints.close()
		w.hints = nil
	}
}
