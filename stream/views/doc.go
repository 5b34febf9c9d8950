// Package views has the views that clients ask for. A view is shared by all clients with
// the same definition.
package views
