//go:build servers

package soak

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
)

var (
	duration    = flag.Duration("duration", 4*time.Second, "how long the run lasts")
	subscribers = flag.Int("subscribers", 100, "how many there are")
	attackers   = flag.Int("attackers", len(attacks), "how many of them attack the gateway, in one of the ways of attacks each")
	samples     = flag.Int("sampled", 0, "of how many every event is checked; 0: a quarter, 100 at most")
	rate        = flag.Int("changes", 0, "changes per second at the upstreams; 0: 500, or 200 in a short run")
	onlyFault   = flag.String("fault", "", "the only fault that happens; by default all do")
	reportFile  = flag.String("report", "", "file for the report, which is printed too")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(asCrowd); text != "" {
		if err := crowdMain(text); err != nil {
			fmt.Fprintln(os.Stderr, "crowd:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(realserver.Main(m))
}

// long reports that the run is long enough to check memory: anything that grows
// to a bound has reached it in the first half.
const long = 2 * time.Minute

// plan is the configuration from the flags.
type plan struct {
	duration                  time.Duration
	sampled, crowd, attackers int
	rate                      int
	between                   time.Duration // approximate time from one fault of an upstream to its next
	progress                  time.Duration
}

func planned() plan {
	p := plan{
		duration: *duration, sampled: *samples, attackers: *attackers, rate: *rate,
		between: min(*duration/20, time.Minute), progress: 30 * time.Second,
	}
	if p.sampled == 0 {
		p.sampled = min(*subscribers/4, 100)
	}
	if p.duration < long {
		p.between, p.progress = p.duration/10, 2*time.Second
	}
	if p.rate == 0 {
		p.rate = 500
		if p.duration < long {
			p.rate = 200
		}
	}
	p.crowd = max(*subscribers-p.sampled-p.attackers, 0)
	return p
}

// TestSoak is the run. See the package comment.
func TestSoak(t *testing.T) {
	r := newRun(t, planned())
	r.settle()
	r.live()
	r.end()
	text := r.report()
	t.Log("\n" + text)
	if *reportFile == "" {
		return
	}
	if err := os.WriteFile(*reportFile, []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}
