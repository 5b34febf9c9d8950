//go:build !linux

package gateway

// newLookout is nil where there is no lookout: all streams stay with net/http.
var newLookout func() (lookout, error)
