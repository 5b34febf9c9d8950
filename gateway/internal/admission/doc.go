// Package admission decides which streams are admitted. It counts the open ones, by
// client and by watch, ends them when the gateway drains, and determines which client
// a request comes from, also behind proxies, and how much detail it may get.
package admission
