// Package quota limits what one principal may use, over all its addresses: streams, requests,
// and the memory and processors that its requests take.
package quota
