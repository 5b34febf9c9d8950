// Package thirdparty tests the gateway with clients of Server-Sent Events that others
// wrote: they know nothing of this protocol except the events, the ids and the time to
// wait. All of it is tests, in a module of its own, so that these clients stay out of the
// product's go.mod.
package thirdparty
