package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notifier delivers the operating system's hints on touched names. Owned by
// Watch. It has two goroutines, which close ends: that of fsnotify, and one that
// receives its errors. fsnotify sends these while it holds the lock that Add and
// Close wait for, so the goroutine that adds and closes must not be the receiver.
type notifier struct {
	// Static after construction.
	dir    string
	rescan time.Duration // for messages where hints are unavailable
	open   func() (*fsnotify.Watcher, error)
	lost   chan struct{} // 1 slot; full: hints were lost since it was emptied

	// Owned by Watch.
	watcher *fsnotify.Watcher   // nil: there are no hints
	taken   chan struct{}       // closed when the errors of watcher have ended
	watched map[string]struct{} // directories below dir, without links; "." is dir
	leading map[string]struct{} // links on the way to dir, and dir itself
	refused int                 // directories without hints
	err     error               // the reason
}

func newNotifier(s *Source) notifier {
	return notifier{dir: s.config.Dir, rescan: s.config.Rescan, open: s.open, lost: make(chan struct{}, 1)}
}

// renew starts over, without directories. That is also how directories that were
// moved, replaced or unmounted are unwatched: their hints would come under an
// outdated name.
func (n *notifier) renew() {
	n.close()
	n.watched, n.leading = map[string]struct{}{}, map[string]struct{}{}
	n.refused, n.err = 0, nil
	w, err := n.open()
	if err != nil {
		n.err = err
		return
	}
	n.watcher, n.taken = w, make(chan struct{})
	go takeErrors(w.Errors, n.lost, n.taken)
	n.lead()
}

// takeErrors treats all errors alike: a hint was lost.
func takeErrors(errors <-chan error, lost chan<- struct{}, taken chan<- struct{}) {
	defer close(taken)
	for range errors {
		select {
		case lost <- struct{}{}:
		default:
		}
	}
}

func openHints() (*fsnotify.Watcher, error) {
	const buffer = 1024 // during a scan; the rest waits in the kernel
	return fsnotify.NewBufferedWatcher(buffer)
}

// lead requests hints about the links on the way to dir, and about dir itself:
// when their targets change, dir is another directory.
func (n *notifier) lead() {
	n.leading[n.dir] = struct{}{}
	for at := n.dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			n.leading[at] = struct{}{}
		}
	}
	for name := range n.leading {
		// Where that is not allowed, the periodic scan notices.
		_ = n.watcher.Add(filepath.Dir(name))
	}
}

// watch requests hints about changes in a directory below dir.
func (n *notifier) watch(dir string) {
	if _, done := n.watched[dir]; done {
		return
	}
	n.watched[dir] = struct{}{}
	if n.watcher == nil {
		n.refused++
		return
	}
	err := n.watcher.Add(filepath.Join(n.dir, filepath.FromSlash(dir)))
	switch {
	case err == nil:
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission): // the scan gives the details
	default:
		n.refused++
		n.err = err
	}
}

// problem reports the directories without hints, and a remedy; nil: there are
// none.
func (n *notifier) problem() error {
	if n.refused == 0 {
		return nil
	}
	seen := "never seen"
	if n.rescan > 0 {
		seen = fmt.Sprintf("seen only every %v", n.rescan)
	}
	return fmt.Errorf("changes in %d directories are %s: the operating system gives no hints: %w%s", n.refused, seen, cause(n.err), advice(n.err))
}

// advice explains two errors of Linux whose text is misleading.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return " (on Linux: raise the sysctl fs.inotify.max_user_watches)"
	case errors.Is(err, syscall.EMFILE):
		return " (on Linux: raise the sysctl fs.inotify.max_user_instances, or the limit of open files)"
	}
	return ""
}

func (n *notifier) events() <-chan fsnotify.Event {
	if n.watcher == nil {
		return nil
	}
	return n.watcher.Events
}

// name returns the path of an event below dir.
func (n *notifier) name(e fsnotify.Event) (name string, inside bool) {
	if e.Name == n.dir {
		return ".", true
	}
	rest, inside := strings.CutPrefix(e.Name, strings.TrimSuffix(n.dir, string(filepath.Separator))+string(filepath.Separator))
	return filepath.ToSlash(rest), inside
}

// close ends the hints, and waits for both goroutines.
func (n *notifier) close() {
	if n.watcher == nil {
		return
	}
	_ = n.watcher.Close() // it is abandoned, whatever the error
	<-n.taken
	n.watcher = nil
	select {
	case <-n.lost: // of the abandoned watcher
	default:
	}
}
