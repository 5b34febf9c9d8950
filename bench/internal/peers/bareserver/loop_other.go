//go:build !linux

package main

import "errors"

func run(bool) error { return errors.New("the bare loop needs Linux") }
