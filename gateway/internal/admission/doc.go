// Package admission decides which streams are let in. It counts the open ones, by
// client and by watch, makes them leave when the gateway drains, and determines which
// client a request comes from, behind proxies too, and how much it may be told.
package admission
