// Package histories plays random histories through trees of gateways, in fake time,
// and runs every checker of streamtest on the events of subscribers.
//
// It contains only tests. One history is a scripted upstream, one or two gateways
// that follow it, up to three more behind these, each with a load balancer in front
// of its upstreams, and subscribers that move between all of them. Some follow views,
// and one more gateway may follow nothing but a view. The gateways,
// their handlers and the sources that follow them are the real ones; the upstream,
// the network and the clock are scripted.
package histories
