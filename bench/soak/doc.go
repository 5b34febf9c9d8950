// Package soak holds one test, which lets a gateway run for a long time under
// thousands of subscribers that behave badly, over two upstreams that fail again and
// again, and then looks at what is left: what every sampled subscriber was told must
// pass the checkers of all guarantees, and memory, goroutines and descriptors must be
// where they were.
//
// Some of the subscribers are attackers: they send bodies that trickle in, ask for
// listings that they do not read, open connections on which they say nothing, and so
// on. The others must not notice.
//
// The gateway is the built program, a process of its own; so is the crowd of its
// subscribers. The upstreams (a store behind gRPC and a real etcd), the proxies that
// fail, the writers and the sampled subscribers are in the process of the test.
//
// With the other tests it runs for a few seconds. The long run is
//
//	make soak DURATION=30m SUBSCRIBERS=10000
package soak
