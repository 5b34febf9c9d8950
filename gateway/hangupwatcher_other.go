//go:build !linux

package gateway

// newHangupWatcher is nil where there is no hangup watcher: all streams stay with net/http.
var newHangupWatcher func() (hangupWatcher, error)
