package gateway

import "testing"

// TestStackOfARequest: what a client sends is no index into the room on the stack.
func TestStackOfARequest(t *testing.T) {
	for _, n := range []int{0, 3, requestStack - 1, requestStack, 10 * requestStack} {
		growStack(n)
	}
}
