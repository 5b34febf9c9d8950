// Package views serves the views of watches that clients ask for.
//
// A view is a log that is fed by the log of its watch. All who ask for the same definition
// share one. It is built by the first of them, and kept for a while after the last.
//
// The views of a watch are fed together, by two goroutines. One looks up, for each change,
// the views that it can concern. The other serves those that no index finds, each of which
// is asked about every change. A view that a change does not concern costs nothing: it
// learns how far the watch is when it is read.
//
// A new view is built by one of a few builders, which all views share, in turns: so one
// that takes long delays others by a turn at most. A view whose filter can cost much has
// builders apart, and is never fed by the two goroutines, but by these too. So it lags alone,
// and no cheap view waits for it.
//
// A window of a view is a log that is fed by an order of the view, which all of its windows
// share. The order takes the place of a view in all of the above.
package views
