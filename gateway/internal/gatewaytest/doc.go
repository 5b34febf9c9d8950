// Package gatewaytest is shared by the tests of the gateway and of its parts: it has
// watches with scripted sources, and a network in memory, so that all of it runs in the
// fake time of testing/synctest.
package gatewaytest
