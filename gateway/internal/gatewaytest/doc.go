// Package gatewaytest is what the tests of the gateway and of its parts share: watches
// with scripted sources, and a network in memory, so that all of it runs in the fake time
// of testing/synctest.
package gatewaytest
