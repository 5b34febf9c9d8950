//go:build !linux

package main

import (
	"context"

	"github.com/watchtide/watchtide/bench/internal/process"
)

// enterNamespace fails here.
func enterNamespace(context.Context, string) (process.Dial, error) { return nil, errNoNamespace }
