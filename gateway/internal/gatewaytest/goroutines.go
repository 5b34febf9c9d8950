package gatewaytest

import (
	"runtime"
	"strings"
	"time"
)

// GatewayCode begins the names of the functions of the gateway and of its parts.
const GatewayCode = "github.com/watchtide/watchtide/gateway"

// GoroutinesIn returns how many goroutines are inside of a function whose name
// contains the text.
func GoroutinesIn(function string) int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	found := 0
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		calls, _, _ := strings.Cut(one, "\ncreated by ")
		if strings.Contains(calls, function) {
			found++
		}
	}
	return found
}

// WaitGoroutines waits until at most so many goroutines are inside of such a function.
func WaitGoroutines(function string, most int) {
	for GoroutinesIn(function) > most {
		<-time.After(10 * time.Millisecond)
	}
}
