package doctor

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// countdown shows on a terminal what is waited for, and for how long yet.
//
// Begin and end are called by one goroutine; the other one is its own.
type countdown struct {
	out    io.Writer
	shown  bool
	escape func([]byte) []byte // for a terminal

	stop chan struct{} // nil: nothing is shown
	done sync.WaitGroup
}

// begin shows another line, until the next call.
func (p *countdown) begin(text string, atMost time.Duration) {
	p.end()
	if !p.shown {
		return
	}
	stop := make(chan struct{})
	p.stop = stop
	until := time.Now().Add(atMost)
	p.done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			left := max(time.Until(until), 0).Round(time.Second)
			fmt.Fprintf(p.out, "\r\x1b[K%s (at most %v)", p.escape([]byte(text)), left)
			select {
			case <-tick.C:
			case <-stop:
				fmt.Fprint(p.out, "\r\x1b[K")
				return
			}
		}
	})
}

// end removes the line.
func (p *countdown) end() {
	if p.stop != nil {
		close(p.stop)
		p.done.Wait()
		p.stop = nil
	}
}
