// Package peers starts the servers that the fan-out bench compares: each as
// processes of its own, fresh for each run, on a free port of loopback.
//
// A peer delivers the published events to each of its subscribers, as
// Server-Sent Events. Where it can, it also answers with a snapshot. The bench
// process publishes in the way that is natural and cheap for that server: the
// gateway follows the bench as its gRPC upstream, a hub reads its standard
// input, others have a port for publishers. Every file is one peer.
package peers
