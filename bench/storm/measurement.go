package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/load"
	"github.com/watchtide/watchtide/bench/internal/process"
)

// measurement covers the time since its start.
type measurement struct {
	began           time.Time
	pid             int
	before          process.Usage
	rest, pages     int // KiB of memory, pages of all TCP sockets of the system
	peak, mostPages int
	lastLook        time.Time
}

func measureFrom(g *gatewayProcess) *measurement {
	m := &measurement{pid: g.cmd.Process.Pid}
	m.rest, m.pages = m.memory(), tcpPages()
	m.peak, m.mostPages = m.rest, m.pages
	m.before = m.used()
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
	used := m.used().Since(m.before)
	m.lastLook = time.Time{}
	m.sample()
	fmt.Printf("%.2f s, %.0f MiB sent, CPU %.2f s user %.2f s system, memory %d MiB before, at most %d MiB more, TCP buffers of both sides at most %d MiB\n",
		took.Seconds(), float64(s.Bytes)/(1<<20), used.User.Seconds(), used.System.Seconds(),
		m.rest>>10, (m.peak-m.rest)>>10, (m.mostPages-m.pages)>>8)
}

// used is the processor time of the gateway so far.
func (m *measurement) used() process.Usage {
	u, _ := process.UsageOf(m.pid)
	return u
}

// memory is the resident memory of the gateway in KiB.
func (m *measurement) memory() int {
	n, _ := process.Resident(m.pid)
	return int(n >> 10)
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
