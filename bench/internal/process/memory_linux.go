package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakMemory is the most memory that was resident since the gateway has started, in bytes.
func (g *Gateway) PeakMemory() (int64, error) {
	name := fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no VmHWM", name)
}
