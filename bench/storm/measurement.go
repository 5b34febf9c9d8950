package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
)

// measurement covers the time since its start.
type measurement struct {
	began           time.Time
	pid             int
	user, system    float64
	rest, pages     int // KiB of memory, pages of all TCP sockets of the system
	peak, mostPages int
	lastLook        time.Time
}

func measureFrom(g *gatewayProcess) *measurement {
	m := &measurement{pid: g.cmd.Process.Pid}
	m.rest, m.pages = m.memory(), tcpPages()
	m.peak, m.mostPages = m.rest, m.pages
	m.user, m.system = m.cpu()
	m.began = time.Now()
	return m
}

// sample measures the memory, at most ten times a second.
func (m *measurement) sample() {
	if time.Since(m.lastLook) < 100*time.Millisecond {
		return
	}
	m.lastLook = time.Now()
	m.peak = max(m.peak, m.memory())
	m.mostPages = max(m.mostPages, tcpPages())
}

func (m *measurement) print(s load.Stats) {
	took := time.Since(m.began)
	user, system := m.cpu()
	m.lastLook = time.Time{}
	m.sample()
	fmt.Printf("%.2f s, %.0f MiB sent, CPU %.2f s user %.2f s system, memory %d MiB before, at most %d MiB more, TCP buffers of both sides at most %d MiB\n",
		took.Seconds(), float64(s.Bytes)/(1<<20), user-m.user, system-m.system,
		m.rest>>10, (m.peak-m.rest)>>10, (m.mostPages-m.pages)>>8)
}

// cpu returns the seconds of processor time that the gateway has used; see
// proc_pid_stat(5).
func (m *measurement) cpu() (user, system float64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	if err != nil {
		return 0, 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+2:]))
	const hertz = 100
	return float64(number(f[11])) / hertz, float64(number(f[12])) / hertz
}

// memory is the resident memory of the gateway in KiB.
func (m *measurement) memory() int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	return number(f[0])
}

// tcpPages is the memory of all TCP sockets of the system, in pages of 4 KiB; see
// /proc/net/sockstat in proc_pid_net(5).
func tcpPages() int {
	b, _ := os.ReadFile("/proc/net/sockstat")
	_, rest, _ := strings.Cut(string(b), "TCP:")
	line, _, _ := strings.Cut(rest, "\n")
	f := strings.Fields(line)
	for i := 0; i+1 < len(f); i++ {
		if f[i] == "mem" {
			return number(f[i+1])
		}
	}
	return 0
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
