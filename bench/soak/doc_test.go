// Package soak holds one test, which lets a gateway run for a long time under
// thousands of misbehaving subscribers, over two upstreams that fail again and again,
// and then examines the result: the events of every sampled subscriber must pass the
// checkers of all guarantees, and memory, goroutines and descriptors must be back at
// their initial level.
//
// Some of the subscribers are attackers: they send bodies that trickle in, request
// listings that they do not read, open connections without sending anything, and so
// on. The others must not be affected.
//
// The gateway is the built program, a process of its own; so is the crowd of its
// subscribers. The upstreams (a store behind gRPC and a real etcd), the failing
// proxies, the writers and the sampled subscribers are in the process of the test.
//
// With the other tests it runs for a few seconds. The long run is
//
//	make soak DURATION=30m SUBSCRIBERS=10000
package soak
