//go:build !unix

package main

import "os"

// readerGone cannot be told without writing: the next event will tell.
func readerGone(*os.File) bool { return false }
