//go:build !linux

package process

import (
	"errors"
	"time"
)

// errLinux is the error of what is read on Linux only.
var errLinux = errors.New("processor time is read on Linux only")

// CPU fails here.
func (g *Gateway) CPU() (time.Duration, error) { return 0, errLinux }

// CPU fails here.
func CPU() (time.Duration, error) { return 0, errLinux }
