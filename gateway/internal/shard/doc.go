// Package shard is the shard pump: a few goroutines carry the streams of very many
// connections of HTTP/1.1, and of HTTP/2. Streams at the same position in the same watches
// form a group, and get the same bytes, rendered once.
package shard
