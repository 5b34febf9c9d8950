package load

// Options specify the figures of a Client. All but Address are optional.
type Options struct {
	// Address is the host:port to connect to; the host is an IPv4 number.
	Address string

	// Earlier is how many connections other processes make to the same address, so that
	// these come from other ones. It matters if it is more than 20,000.
	Earlier int

	// Marker occurs once in each event to be counted. One whose first byte is
	// rare in the stream, such as a line feed, is found fastest.
	Marker []byte
	// Done marks the end of the data that a subscriber waits for, for instance its
	// snapshot.
	Done []byte
	// EndIsDone treats the end of the response as Done, and not as a loss.
	EndIsDone bool
	// Sample looks at every Sample-th connection for timestamps. 0: at none.
	Sample int
	// InFlight is how many connections Open waits for at the same time. 0: 256,
	// fewer than fit into any server's accept queue.
	InFlight int
	// Stamp precedes the time in an event. Nil: "at":.
	Stamp []byte
	// IDs keeps the last event ID of each connection, for LastID.
	IDs bool

	// OnEvents is called when a read has completed n events.
	OnEvents func(conn, n int)
	// OnBytes is called with the bytes of each read, the response's head and its
	// chunk framing included. They are valid during the call.
	OnBytes func(conn int, b []byte)
	// OnDone is called when a connection is done; once for each request.
	OnDone func(conn int)
	// OnEnd is called when a connection is over without Close or Reset: with nil
	// if the server ended it, else with the system's error.
	OnEnd func(conn int, err error)
}

// Request is one subscription to open.
type Request struct {
	// Bytes are sent: a complete HTTP/1.1 request.
	Bytes []byte
	// ReceiveBuffer is the size of the socket's buffer, in bytes as for
	// SO_RCVBUF. 0: the system's, which grows.
	ReceiveBuffer int
	// Stalled reads nothing until Resume: the server's writes pile up.
	Stalled bool
	// Held connects, but sends the request only with Release: so that many can
	// start at once.
	Held bool
}
