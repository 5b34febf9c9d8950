package host

import (
	"context"
	"errors"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
)

// usageTimeout is how long one poll waits for the usage of all mounts. A disk
// answers in microseconds and a file server in milliseconds.
const usageTimeout = 500 * time.Millisecond

var errNoAnswer = errors.New("no answer within " + usageTimeout.String())

// usageAnswer is the operating system's answer for one mount.
type usageAnswer struct {
	usage *disk.UsageStat
	err   error
}

// usageAsker requests the usage of mounts without waiting long. Not safe for
// concurrent use.
type usageAsker struct {
	// Static after construction; called from goroutines of its own.
	usage func(mountPoint string) (*disk.UsageStat, error)

	// Owned by ask: mounts that did not answer, by mount point. Each channel
	// has room for the one answer, so that a late one need not wait.
	late map[string]<-chan usageAnswer
}

// ask queries all mounts in parallel and returns the answers, errNoAnswer for
// those that did not answer in time.
func (a *usageAsker) ask(mountPoints []string) map[string]usageAnswer {
	asked := make(map[string]<-chan usageAnswer, len(mountPoints))
	for _, point := range mountPoints {
		asked[point] = a.begin(point)
	}
	ctx, cancel := context.WithTimeout(context.Background(), usageTimeout)
	defer cancel()
	answers := make(map[string]usageAnswer, len(mountPoints))
	late := map[string]<-chan usageAnswer{}
	for point, answer := range asked {
		answers[point] = a.await(ctx, point, answer)
		if errors.Is(answers[point].err, errNoAnswer) {
			late[point] = answer
		}
	}
	a.late = late
	return answers
}

// begin queries one mount, unless its last answer is still outstanding. A late
// answer is discarded, for it may be old; it shows that the mount answers
// again.
func (a *usageAsker) begin(point string) <-chan usageAnswer {
	if owed, ok := a.late[point]; ok {
		select {
		case <-owed:
			delete(a.late, point)
		default:
			return owed
		}
	}
	answer := make(chan usageAnswer, 1)
	go func() {
		usage, err := a.usage(point)
		answer <- usageAnswer{usage, err}
	}()
	return answer
}

// await waits for one answer until ctx ends, but not for a mount that was late
// before.
func (a *usageAsker) await(ctx context.Context, point string, answer <-chan usageAnswer) usageAnswer {
	if _, owed := a.late[point]; owed {
		return usageAnswer{err: errNoAnswer}
	}
	select {
	case got := <-answer:
		return got
	case <-ctx.Done():
	}
	select {
	case got := <-answer: // both were ready
		return got
	default:
		return usageAnswer{err: errNoAnswer}
	}
}
