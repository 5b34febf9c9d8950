package nats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// Time is virtual in these tests: the reader runs in a bubble, with a bucket
// under the test's control.

// following is a running reader.
type following struct {
	*bench
	deliveries chan delivery
	end        context.CancelFunc
	ended      chan error
	began      time.Time
}

func follow(t *testing.T, b *fakeBucket) *following {
	f := &following{bench: newBench(t, b), deliveries: make(chan delivery, 10), ended: make(chan error, 1), began: time.Now()}
	ctx, end := context.WithCancel(context.Background())
	f.end = end
	go func() { f.ended <- f.reader.read(ctx, f.deliveries, DefaultPollInterval) }()
	synctest.Wait()
	return f
}

// deliver delivers a message.
func (f *following) deliver(d delivery, pending uint64) {
	f.number++
	d.number, d.pending = f.number, pending
	f.deliveries <- d
	synctest.Wait()
}

// beat delivers heartbeats for a while.
func (f *following) beat(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		<-time.After(time.Second)
		f.deliveries <- delivery{kind: heartbeat, number: f.number}
		synctest.Wait()
	}
}

// alive delivers heartbeats until end is called.
func (f *following) alive() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			select {
			case <-time.After(time.Second):
				f.deliveries <- delivery{kind: heartbeat}
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// gaveUp requires that the reader ends with an error after a time.
func (f *following) gaveUp(want error, text string, after time.Duration) {
	f.t.Helper()
	err := <-f.ended
	if took := time.Since(f.began); !errors.Is(err, want) || !strings.Contains(err.Error(), text) || took != after {
		f.t.Errorf("ended with %v after %v, want %v (%s) after %v", err, took, want, text, after)
	}
}

func (f *following) stop() {
	f.t.Helper()
	f.end()
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		f.t.Errorf("ended with %v", err)
	}
}

func TestSilenceIsAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, newFakeBucket())
		f.wantCalls("commit 0")
		f.beat(3 * time.Second)
		f.gaveUp(stream.ErrStalled, "nothing received for 4s", 7*time.Second)
	})
}

// While a large value is on its way, nothing else can arrive.
func TestBusyLineIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, newFakeBucket())
		for range 60 {
			<-time.After(time.Second)
			f.reader.meter.received.Add(busy)
		}
		f.wantCalls("commit 0")
		// The silence is noticed after 4 s, or 4 s later if the line was busy
		// in the first of them.
		err := <-f.ended
		if took := time.Since(f.began); !errors.Is(err, stream.ErrStalled) || took < 64*time.Second || took > 68*time.Second {
			t.Errorf("ended with %v after %v", err, took)
		}
	})
}

func TestHeartbeatsAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, newFakeBucket())
		f.beat(time.Hour)
		f.wantCalls("commit 0")
		f.stop()
	})
}

// A consumer that is alive, but does not send the messages of the bucket.
func TestStuckConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBucket()
		f := follow(t, b)
		f.wantCalls("commit 0")
		b.write("a")
		defer f.alive()()
		// Noticed at the first check, after 5 s, and given up at the next, when
		// it has sent nothing for longer than 4 s.
		f.gaveUp(stream.ErrStalled, "newest message has sequence 1, and nothing arrived after 0", 10*time.Second)
	})
}

// A snapshot that makes no progress is noticed, too.
func TestStuckSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBucket()
		b.write("a")
		f := follow(t, b)
		defer f.alive()()
		err := <-f.ended
		if took := time.Since(f.began); !errors.Is(err, stream.ErrStalled) || took < DefaultStallAfter || took > 6*time.Second {
			t.Errorf("ended with %v after %v", err, took)
		}
		f.wantCalls()
	})
}

// The server is queried about held-back messages soon, but not all the time.
func TestHeldBackIsQueried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBucket()
		f := follow(t, b)
		f.wantCalls("commit 0")
		b.write("a")
		a, x := b.write("a"), b.write("x")
		b.queries()
		f.deliver(a, 9)
		f.wantCalls("a=2@2")
		f.beat(3 * time.Second)
		if asked := b.queries(); len(asked) < 3 || len(asked) > 12 {
			t.Errorf("asked %d times in 3 s: %q", len(asked), asked)
		}
		f.deliver(x, 9)
		f.wantCalls("x=3@3", "commit 3")
		b.queries()
		f.beat(4 * time.Second)
		if asked := b.queries(); slices.Contains(asked, "newest") {
			t.Errorf("asked %q, though nothing is held back", asked)
		}
		f.stop()
	})
}

func TestVanishedKeyIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBucket()
		a, x := b.write("a"), b.write("x")
		f := follow(t, b)
		f.deliver(a, 1)
		f.deliver(x, 0)
		f.wantCalls("a=1@1", "x=2@2", "commit 2")
		b.vanish("a")
		f.beat(4 * time.Second)
		f.wantCalls()
		f.beat(2 * time.Second)
		f.wantCalls("-a@0", "commit 2")
		f.stop()
	})
}

// slowBucket answers slowly.
type slowBucket struct {
	*fakeBucket
	takes time.Duration
}

func (b slowBucket) keys(ctx context.Context, filter string) (state, map[string]uint64, error) {
	<-time.After(b.takes)
	return b.fakeBucket.keys(ctx, filter)
}

// A bucket so large that it takes long to compare is compared less often.
func TestComparingTakesABoundedPartOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBucket()
		b.now.alone = false
		n := newBench(t, b)
		n.reader.bucket = slowBucket{b, time.Second}
		deliveries, ended := make(chan delivery, 10), make(chan error, 1)
		ctx, end := context.WithCancel(context.Background())
		go func() { ended <- n.reader.read(ctx, deliveries, DefaultPollInterval) }()
		for range 100 {
			<-time.After(time.Second)
			deliveries <- delivery{kind: heartbeat}
		}
		end()
		<-ended
		var looks int
		for _, what := range b.queries() {
			if what == "keys" {
				looks++
			}
		}
		if looks < 3 || looks > 5 {
			t.Errorf("compared %d times in 100 s, want one in 21 s", looks)
		}
	})
}

// Messages that wait become visible together, and not too many of them.
func TestMessagesThatWaitAreOneCommit(t *testing.T) {
	b := newFakeBucket()
	n := newBench(t, b)
	n.ask()
	n.wantCalls("commit 0")
	deliveries := make(chan delivery, 2*together)
	for i := range 2 * together {
		d := b.write("a")
		d.number, d.pending = uint64(i+1), 0
		deliveries <- d
	}
	for len(deliveries) > 0 {
		n.must(n.reader.takeAll(<-deliveries, deliveries))
		n.must(n.reader.commit(t.Context()))
	}
	var commits []string
	for _, line := range n.sink.take() {
		if strings.HasPrefix(line, "commit") {
			commits = append(commits, line)
		}
	}
	if !slices.Equal(commits, []string{"commit 256", "commit 512"}) {
		t.Errorf("committed %q", commits)
	}
}
