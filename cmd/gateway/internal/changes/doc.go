// Package changes tells what has changed in followed watches from what a stream only repeats: after
// a reset, after a reconnect, and after a restart of the process. A [Runner] runs a command for each
// change, at least once, and remembers in a file what it was run for.
//
// A [Condition] decides whether the resources of a watch are in an awaited state, by an expression
// in CEL (https://cel.dev). An expression is evaluated for one watch at a time, over
//
//	watch      string            name of the watch
//	count      int               number of its resources
//	resources  map(string, dyn)  its resources: key → value
//
// and yields true or false. The strings extension is available as well. JSON numbers without a
// fraction are int, or uint beyond 2^63, so that no digit is lost; others are double; they compare
// with one another.
//
//	count > 3
//	"default/web" in resources && resources["default/web"].replicas >= 2
//	resources.exists(k, k.startsWith("eu/") && resources[k].state == "ready")
//	watch != "nodes" || count == 5
package changes
