// Package load opens many subscriptions and counts the arriving events, so cheaply that
// it does not distort the measurement.
//
// A Client is one epoll loop over plain TCP connections: no goroutine and no net.Conn
// for any of them. It belongs to the goroutine that calls it: nothing happens between
// two calls of Poll, so anything else may be done there, and a hook may call back into
// the Client.
//
//	c, err := load.New(load.Options{Address: "127.0.0.1:8080", Marker: []byte("\nevent: upsert\n")})
//	defer c.Close()
//	err = c.Open(10_000, load.Request{Bytes: request})
//	for c.Stats().Events < want {
//		_, err = c.Poll(time.Second)
//	}
//
// # What is counted
//
// Events are counted by a marker that occurs once in each, wherever the reads cut the
// stream. A second marker, or the end of the response, shows when a subscriber is done,
// for instance with its snapshot. Latency is measured on a sample of the connections
// from a member "at":<unix nanoseconds> that the publisher put into the event; it ends
// when the event was read here, so that it includes the lag of a loop that does not
// keep up. Compressed responses are counted in bytes; a hook can record those of one
// connection to decode them.
//
// # Limits
//
// It runs only on Linux; elsewhere New returns an error. The process needs a descriptor
// for each connection. The server's address is a numeric IPv4 address. If it is
// loopback, connections come from 127.0.0.1, the next 10,000 from 127.0.0.2 and so on,
// as the ports of one address would run out.
package load
