// Package histories plays random histories through trees of gateways, in fake
// time, and puts what subscribers were told through every checker of streamtest.
//
// All of it is tests. One history is a scripted upstream, one or two gateways at
// it, up to three more behind these, each with a load balancer in front of what it
// follows, and subscribers that move between all of them. The gateways, their
// handlers and the sources that follow them are the real ones; what is scripted is
// the upstream, the network and the clock.
package histories
