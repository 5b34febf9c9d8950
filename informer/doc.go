// Package informer is a source for what a program has already: the objects of a client-go informer, or of a
// cache of controller-runtime. [New] returns a [stream.Source], which the gateway serves as a watch.
//
// # What is guaranteed
//
// A watch begins with the whole list, once the informer has synced and has handed all of it to the source.
// After that, each change is sent as soon as the informer reports it. What subscribers have is always a state
// that the informer has had, or one on the way between two of these: an object that changes several times while
// the source is busy is sent once, with the newest value, and what has changed meanwhile is one commit.
//
// The revision of a resource is counted by the source, in an order that no other process has, and is not the
// resourceVersion of the object. An informer leaves out values, lists again after an interruption, in any order
// and with deletes that have no version, and does not say how far it has come. A position made of its
// resourceVersions would leave open what a subscriber has seen. So a client that comes to another replica,
// or to a restarted one, is sent a snapshot, or the difference if it resumes by digest. Where positions have to be
// valid at every replica, follow the cluster with a source of type kubernetes in place of an informer.
//
// An informer that lists again, or resyncs, costs subscribers nothing: what has not changed is not sent. A delete
// that the informer has missed, [cache.DeletedFinalStateUnknown], is a delete as any other.
//
// An informer does not say when it has lost its server. The watch then stays in_sync with what the informer
// has. When the informer has been stopped, the watch is stale within a second.
//
// # What it costs
//
// The handler of the source never blocks: it notes which objects have changed, at most each object once. The
// source keeps the key of each object and a hash of its value. The informer's objects are neither changed nor kept.
package informer
