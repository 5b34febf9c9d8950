//go:build race

package gateway

func init() { racing = true }
