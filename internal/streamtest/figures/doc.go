// Package figures measures what a source costs compared to the client library that
// it is built on: the time and memory until a collection is primed, the changes that
// it carries in a second, and how much later they are than with the library alone.
// Each source has a benchmark that gives [Run] a way to load its upstream and to
// read it without the gateway:
//
//	func BenchmarkUpstream(b *testing.B) { figures.Run(b, figures.Rig{…}) }
//
// One iteration is one run of all phases, and takes some seconds:
//
//	go test -run '^$' -bench Upstream -benchtime 1x ./internal/source/...
package figures
