//go:build !linux

package main

import "errors"

func descriptors() (int, error) { return 0, errors.New("the load generator needs Linux") }
