package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// bench is one invocation.
type bench struct {
	options
	process.Table
	parts     []part
	dir       string // for the programs and their files; removed by close
	program   string // the gateway
	generator string // the load generator
	began     time.Time
}

// part is one measurement.
type part struct {
	name string
	run  func(*bench, context.Context) error
}

var allParts = []part{
	{"shared", (*bench).inShared},
	{"equality", (*bench).inEquality},
	{"prefix", (*bench).inPrefix},
	{"scan", (*bench).inScan},
	{"memory", (*bench).inMemory},
	{"build", (*bench).inBuild},
	{"windows", (*bench).inWindows},
	{"plain", (*bench).inPlain},
	{"roles", (*bench).inRoles},
	{"credentials", (*bench).inCredentials},
}

func names() string {
	var names []string
	for _, p := range allParts {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func newBench(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o, began: time.Now()}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for _, p := range allParts {
		if only.MatchString(p.name) {
			b.parts = append(b.parts, p)
		}
	}
	if len(b.parts) == 0 {
		return nil, fmt.Errorf("-only %s: want a part of %s", o.only, names())
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return nil, err
		}
	}
	if b.dir, err = os.MkdirTemp("", "views"); err != nil {
		return nil, err
	}
	if b.program, b.generator, err = process.Build(ctx, b.dir); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() { os.RemoveAll(b.dir) }

// runAll makes all measurements, one after the other.
func (b *bench) runAll(ctx context.Context) error {
	for _, p := range b.parts {
		b.logf("%s", p.name)
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	b.logf("done")
	return nil
}

// logf prints the progress.
func (b *bench) logf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, arguments...))
}
