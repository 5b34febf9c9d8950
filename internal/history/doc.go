// Package history reads what has changed in a watch lately, newest first, out of its log: the
// versions of a resource, or the changes of all of them, as far as the log has not dropped what
// was superseded.
//
// With a definition it shows the past of a view. Each version is evaluated by itself, by the
// definition as it is now: one that the view would not have had is not there, and a delete or a
// version that is not selected is a delete only if the view would have had the version before.
package history
