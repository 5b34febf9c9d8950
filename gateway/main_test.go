package gateway

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/grpclog"

	"github.com/watchtide/watchtide/gateway/internal/wire"
)

// pumpVariable names the pump that this process tests; unset: both, one after the
// other, or with -short the shard pump.
const pumpVariable = "WATCHTIDE_TEST_PUMP"

// The requests of tests use the host name gateway.
func init() { ownHosts = append(ownHosts, "gateway") }

// The encoder of zstd has a channel, which bubbles of synctest can share only if none of them has made it.
func init() { wire.Zstd.Compress([][]byte{make([]byte, 64<<10)}) }

func TestMain(m *testing.M) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, &grpcErrors))
	goleak.VerifyTestMain(bothPumps{m})
}

// grpcErrors is what gRPC and grpc-gateway would write to standard error.
var grpcErrors errorLog

// errorLog records what was written. Any goroutine may use it.
type errorLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *errorLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *errorLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func pumpUnderTest() Pump {
	if p := Pump(os.Getenv(pumpVariable)); p != "" {
		return p
	}
	return PumpShards
}

// bothPumps runs all tests with the shard pump and then, in another process and not
// with -short, with the goroutine pump, with the sizes of -short. One
// processor suffices for it, and keeps the race detector from crashing.
type bothPumps struct{ m *testing.M }

// Run implements goleak.TestingM.
func (b bothPumps) Run() int {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() != "" {
		fmt.Printf("pump: %s\n", pumpUnderTest()) // so that benchstat keeps them apart
		defer fmt.Println("pump:")
	}
	code := b.m.Run()
	if os.Getenv(pumpVariable) != "" || code != 0 || testing.Short() {
		return code
	}
	again := exec.Command(os.Args[0], append(os.Args[1:], "-test.short", "-test.cpu=1")...)
	again.Env = append(os.Environ(), pumpVariable+"="+string(PumpGoroutines))
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	if err := again.Run(); err != nil {
		_, _ = os.Stderr.WriteString("with the goroutine pump: " + err.Error() + "\n")
		return 1
	}
	return 0
}

// slack is how late something may arrive.
func slack() time.Duration {
	if pumpUnderTest() == PumpShards {
		return 100 * time.Millisecond // two ticks of the shard's wheel
	}
	return 0
}
