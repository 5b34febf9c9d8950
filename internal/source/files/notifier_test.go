package files

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestErrorsAreTaken, even while nothing reads them: fsnotify holds a lock
// until they are taken, and adding a directory or closing would wait for it
// forever.
func TestErrorsAreTaken(t *testing.T) {
	sent, lost, taken := make(chan error), make(chan struct{}, 1), make(chan struct{})
	go takeErrors(sent, lost, taken)
	for range 5 {
		sent <- fsnotify.ErrEventOverflow
	}
	close(sent)
	<-taken
	<-lost
	select {
	case <-lost:
		t.Error("lost twice, want once until it is read")
	default:
	}
}

// TestHintsAreMissing: the texts of inotify's errors are misleading.
func TestHintsAreMissing(t *testing.T) {
	for _, c := range []struct {
		n    notifier
		want string
	}{
		{notifier{}, "<nil>"},
		{notifier{refused: 3, rescan: time.Minute, err: fmt.Errorf("x: %w", syscall.ENOSPC)},
			"changes in 3 directories are seen only every 1m0s: the operating system gives no hints: x: no space left on device (on Linux: raise the sysctl fs.inotify.max_user_watches)"},
		{notifier{refused: 1, rescan: -1, err: syscall.EMFILE},
			"changes in 1 directories are never seen: the operating system gives no hints: too many open files (on Linux: raise the sysctl fs.inotify.max_user_instances, or the limit of open files)"},
		{notifier{refused: 2, rescan: time.Second, err: errors.New("unknown")},
			"changes in 2 directories are seen only every 1s: the operating system gives no hints: unknown"},
	} {
		if got := fmt.Sprint(c.n.problem()); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
