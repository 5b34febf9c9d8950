// Package histories plays random histories through trees of gateways, in fake time,
// and runs every checker of streamtest on the events of subscribers.
//
// It contains only tests. One history is a scripted upstream, one or two gateways
// that follow it, up to three more behind these, each with a load balancer in front
// of its upstreams, and subscribers that move between all of them. Some follow views, windows,
// which they move on open streams, or counts, and one more gateway may follow nothing but a view. Some resume by digest, and
// find out what differs with one request after the other, which any gateway may answer, while the history goes on: those of
// streamtest in process, and programs with the Go client over the network. Some gateways have a journal, and end
// in an orderly way or at once while the upstream goes on. The gateways,
// their handlers, their journals and the sources that follow them are the real ones; the upstream,
// the network, the clock and the errors of the disk are scripted.
package histories
