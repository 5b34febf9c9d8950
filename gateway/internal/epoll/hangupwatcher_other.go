//go:build !linux

package epoll

// NewHangupWatcher is nil where there is no hangup watcher: all streams stay with net/http.
var NewHangupWatcher func() (HangupWatcher, error)
