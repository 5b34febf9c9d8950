package signal

import "testing"

// TestList: what was added is called until it is stopped, whatever else is.
func TestList(t *testing.T) {
	var l Listeners
	l.Call()
	var a, b int
	stopA, stopB := l.Add(func() { a++ }), l.Add(func() { b++ })
	l.Call()
	stopA()
	l.Call()
	stopA()
	stopB()
	l.Call()
	if a != 1 || b != 2 {
		t.Errorf("called %d and %d times, want 1 and 2", a, b)
	}
}
