//go:build !linux

package main

import (
	"context"

	"github.com/watchtide/watchtide/bench/process"
)

// enterNamespace fails here.
func enterNamespace(context.Context, string) (process.Dial, error) { return nil, errNoNamespace }
