package nats

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/watchtide/watchtide/stream"
)

// delivery is one message that the consumer sent.
type delivery struct {
	kind     kind
	number   uint64 // 1, 2, 3, … for each connection; of a heartbeat: the last one's
	sequence uint64 // in the stream
	pending  uint64 // number of messages left to send
	time     int64  // when the stream stored it, in nanoseconds since 1970
	part     bool   // of a batch that is published as a whole, and not its last message

	held int64 // bytes, see stream.SinkExtension; released once it is taken

	key      string
	value    []byte
	encoding string

	confirm string // of a heartbeat: the subject on which the server waits for a confirmation of everything sent so far; "": it does not
	err     error  // of kind broken
}

// kind is the meaning of a delivery.
type kind uint8

const (
	written   kind = iota // a key has a value
	deleted               // a key is deleted
	heartbeat             // the consumer is alive
	broken                // the delivery cannot be read
)

const (
	headerOperation = "KV-Operation"
	headerMarker    = "Nats-Marker-Reason" // left by the server for an expired key
	headerBatch     = "Nats-Batch-Id"
	headerBatchEnd  = "Nats-Batch-Commit"
	headerStatus    = "Status"
	headerLast      = "Nats-Last-Consumer"
	headerStalled   = "Nats-Consumer-Stalled"
)

// read converts a message to a delivery. prefix is the prefix of the subjects of
// keys. The server's own messages have the subject inbox, and those of a writer have
// the subject that the writer chose: a writer can set any header, also that of a
// status.
func read(m *nats.Msg, inbox, prefix string, values stream.Values) delivery {
	if m.Subject == inbox && m.Header.Get(headerStatus) != "" && len(m.Data) == 0 {
		return readStatus(m)
	}
	meta, err := m.Metadata()
	if err != nil {
		return invalid("a message on %q that no consumer sent: %w", m.Subject, err)
	}
	key, ok := strings.CutPrefix(m.Subject, prefix)
	if !ok || key == "" || meta.Sequence.Stream == 0 {
		return invalid("a message on %q at sequence %d: want subjects that begin with %q, and sequences from 1",
			m.Subject, meta.Sequence.Stream, prefix)
	}
	d := delivery{
		kind: operation(m), key: key, number: meta.Sequence.Consumer, sequence: meta.Sequence.Stream,
		pending: meta.NumPending, time: meta.Timestamp.UnixNano(),
		part: m.Header.Get(headerBatch) != "" && m.Header.Get(headerBatchEnd) == "",
	}
	if d.kind == written {
		d.value, d.encoding = values.Value(m.Data)
	}
	return d
}

// operation returns the effect of a message on its key. What the server leaves for
// an expired key is empty: with a body, it is a value with an odd header.
func operation(m *nats.Msg) kind {
	if len(m.Header) == 0 {
		return written
	}
	switch m.Header.Get(headerOperation) {
	case "DEL", "PURGE":
		return deleted
	case "":
		if m.Header.Get(headerMarker) != "" && len(m.Data) == 0 {
			return deleted
		}
	}
	return written
}

// readStatus reads a status message of the server.
func readStatus(m *nats.Msg) delivery {
	status, text := m.Header.Get(headerStatus), m.Header.Get("Description")
	if status != "100" {
		return delivery{kind: broken, err: fmt.Errorf("the server ended the consumer: %s %s", status, text)}
	}
	last := m.Header.Get(headerLast)
	if last == "" {
		return delivery{kind: heartbeat, confirm: cmp.Or(m.Reply, m.Header.Get(headerStalled))} // a flow control request
	}
	number, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return invalid("a heartbeat with %s %q: want a number", headerLast, last)
	}
	return delivery{kind: heartbeat, number: number, confirm: cmp.Or(m.Reply, m.Header.Get(headerStalled))}
}

func invalid(format string, args ...any) delivery {
	return delivery{kind: broken, err: fmt.Errorf("%w: "+format, append([]any{stream.ErrInvalid}, args...)...)}
}
