package grpc

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"
)

// delimited writes messages one after the other.
func delimited(events ...*message) []byte {
	var out bytes.Buffer
	for _, m := range events {
		if _, err := protodelim.MarshalTo(&out, m); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// undelimited reads messages up to the first unreadable one.
func undelimited(wire []byte) (events []*message) {
	in := bytes.NewReader(wire)
	for in.Len() > 0 {
		m := &message{}
		if err := protodelim.UnmarshalFrom(in, m); err != nil {
			return events
		}
		events = append(events, m)
	}
	return events
}

func TestDelimited(t *testing.T) {
	if got := undelimited(delimited(reset(), bookmark(4))); len(got) != 2 || got[1].GetBookmark().GetRevision() != 4 {
		t.Errorf("got %v", got)
	}
}
