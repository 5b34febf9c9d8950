// Package limits decides what may go on now, and for which client: which streams are open at a time,
// how much memory the bodies of writes and the answers to requests take, how many bytes of snapshots
// are on their way, and what one principal may use, over all its addresses.
//
// It finds out which client a request comes from, also behind proxies, and how much detail the client
// may get. It ends streams when the gateway drains.
package limits
