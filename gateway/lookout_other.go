//go:build !linux

package gateway

// newLookout is nil where there is none: there all streams stay with net/http.
var newLookout func() (lookout, error)
