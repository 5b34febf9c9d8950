package commands

import (
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// hints are the operating system's hints that names were touched.
type hints interface {
	// add asks for hints about the names in a directory.
	add(dir string)
	// touched delivers the names, and an empty one if some were lost.
	touched() <-chan string
	// close ends the hints, and waits for their goroutines.
	close()
}

// notified are the hints of fsnotify. Its goroutine receives both channels of fsnotify, which
// sends errors while it holds a lock that Add and Close wait for.
type notified struct {
	// Static after construction.
	watcher *fsnotify.Watcher
	names   chan string
	over    chan struct{} // closed by close
	done    chan struct{} // closed when the goroutine has ended
}

// notify returns the hints of the operating system; nil if it has none left.
func notify() hints {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	n := &notified{watcher: w, names: make(chan string), over: make(chan struct{}), done: make(chan struct{})}
	go n.receive()
	return n
}

func (n *notified) receive() {
	defer close(n.done)
	for events, errors := n.watcher.Events, n.watcher.Errors; events != nil && errors != nil; {
		name := ""
		select {
		case e, open := <-events:
			if name = e.Name; !open {
				return
			}
		case _, open := <-errors:
			if !open {
				return
			}
		}
		select {
		case n.names <- name:
		case <-n.over: // what follows is ignored, but must be received
		}
	}
}

func (n *notified) add(dir string) { _ = n.watcher.Add(dir) } // where it fails, the poll notices

func (n *notified) touched() <-chan string { return n.names }

func (n *notified) close() {
	close(n.over)
	_ = n.watcher.Close() // it is not used any more, whatever the error
	<-n.done
}

// directoriesOf returns the directories of names.
func directoriesOf(names map[string]struct{}) map[string]struct{} {
	dirs := map[string]struct{}{}
	for name := range names {
		dirs[filepath.Dir(name)] = struct{}{}
	}
	return dirs
}
