package gateway

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// pumpVariable names the pump that this process tests; unset: both, one after the
// other.
const pumpVariable = "WATCHTIDE_TEST_PUMP"

// The requests of tests are for the host gateway.
func init() { localNames = append(localNames, "gateway") }

func TestMain(m *testing.M) { goleak.VerifyTestMain(bothPumps{m}) }

func pumpUnderTest() Pump {
	if p := Pump(os.Getenv(pumpVariable)); p != "" {
		return p
	}
	return PumpShards
}

// bothPumps runs all tests through the shard pump, then, in another process,
// through the goroutine pump.
type bothPumps struct{ m *testing.M }

// Run implements goleak.TestingM.
func (b bothPumps) Run() int {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() != "" {
		fmt.Printf("pump: %s\n", pumpUnderTest()) // so that benchstat keeps them apart
		defer fmt.Println("pump:")
	}
	code := b.m.Run()
	if os.Getenv(pumpVariable) != "" || code != 0 {
		return code
	}
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), pumpVariable+"="+string(PumpGoroutines))
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	if err := again.Run(); err != nil {
		_, _ = os.Stderr.WriteString("with the goroutine pump: " + err.Error() + "\n")
		return 1
	}
	return 0
}

// slack is by how much what is due may come later.
func slack() time.Duration {
	if pumpUnderTest() == PumpShards {
		return 2 * wheelTick
	}
	return 0
}
