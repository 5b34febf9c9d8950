package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// profiles are those of one load.
type profiles struct {
	dir, name string
	cpu       *os.File
	began     time.Time
	used      syscall.Rusage
}

// begin starts profiling.
func begin(dir, name string) (*profiles, error) {
	p := &profiles{dir: dir, name: name}
	if err := p.writeAllocations("before"); err != nil {
		return nil, err
	}
	var err error
	if p.cpu, err = os.Create(p.path("cpu")); err != nil {
		return nil, err
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &p.used); err != nil {
		return nil, err
	}
	p.began = time.Now()
	return p, pprof.StartCPUProfile(p.cpu)
}

func (p *profiles) path(what string) string {
	return filepath.Join(p.dir, p.name+"."+what+".pprof")
}

func (p *profiles) writeAllocations(when string) error {
	runtime.GC() // the profile is complete after a collection
	file, err := os.Create(p.path(when))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// end stops profiling, and prints the cost of each of n things.
func (p *profiles) end(n int, thing string) error {
	pprof.StopCPUProfile()
	took := time.Since(p.began)
	var used syscall.Rusage
	if err := errors.Join(syscall.Getrusage(syscall.RUSAGE_SELF, &used), p.cpu.Close(), p.writeAllocations("after")); err != nil {
		return err
	}
	user, system := spent(used.Utime, p.used.Utime), spent(used.Stime, p.used.Stime)
	fmt.Printf("\n== %s: %d in %.1f s, %.2f µs of CPU for each %s (user %.2f, system %.2f)\n", p.name, n, took.Seconds(),
		float64((user+system).Nanoseconds())/1e3/float64(n), thing,
		float64(user.Nanoseconds())/1e3/float64(n), float64(system.Nanoseconds())/1e3/float64(n))
	if err := p.difference(); err != nil {
		return err
	}
	return errors.Join(top(p.path("cpu")), top("-sample_index=alloc_space", p.path("allocs")))
}

func spent(after, before syscall.Timeval) time.Duration {
	return time.Duration(after.Nano() - before.Nano())
}

// difference keeps the allocations between begin and end.
func (p *profiles) difference() error {
	cmd := exec.Command("go", "tool", "pprof", "-proto", "-output="+p.path("allocs"), "-base="+p.path("before"), p.path("after"))
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, said)
	}
	return errors.Join(os.Remove(p.path("before")), os.Remove(p.path("after")))
}

// top prints the most frequent functions of a profile, except for the
// profiler's own.
func top(arguments ...string) error {
	cmd := exec.Command("go", append([]string{"tool", "pprof", "-top", "-nodecount=20", "-ignore=runtime/pprof"}, arguments...)...)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%v: %w", cmd.Args, err)
	}
	fmt.Printf("\n$ go tool pprof -top %s\n%s", arguments[len(arguments)-1], out)
	return nil
}
