// Package merge makes one state of a list and of the watch beside it, for sources whose
// upstream cannot read a long list at one revision. Neither has to wait for the other:
// for each key the newest revision counts.
package merge
