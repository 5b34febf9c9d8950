package main

import (
	"fmt"
	"log"
	"os"
	"slices"
)

// process is the test that Consul's builder of test servers expects: it ends
// with the process, and fails by ending it.
type process struct {
	cleanups []func()
}

func (p *process) end() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}

func (p *process) Cleanup(f func())             { p.cleanups = append(p.cleanups, f) }
func (p *process) Fail()                        { p.FailNow() }
func (p *process) FailNow()                     { os.Exit(1) }
func (p *process) Failed() bool                 { return false }
func (p *process) Helper()                      {}
func (p *process) Name() string                 { return "consulresource" }
func (p *process) Setenv(key, value string)     { os.Setenv(key, value) }
func (p *process) TempDir() string              { return os.TempDir() }
func (p *process) Log(args ...any)              { log.Print(args...) }
func (p *process) Logf(f string, args ...any)   { log.Printf(f, args...) }
func (p *process) Error(args ...any)            { p.Fatal(args...) }
func (p *process) Errorf(f string, args ...any) { p.Fatalf(f, args...) }
func (p *process) Fatal(args ...any)            { p.Fatalf("%s", fmt.Sprint(args...)) }
func (p *process) Fatalf(f string, args ...any) { log.Printf(f, args...); p.FailNow() }
