package view

import (
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// BenchmarkAppendSortKey measures a sort key of two columns, one of which is absent.
func BenchmarkAppendSortKey(b *testing.B) {
	d, err := Parse(Params{Order: "team,x1", Limit: "50"})
	if err != nil {
		b.Fatal(err)
	}
	r := stream.Resource{Key: "k/0001", Value: []byte(`{"n":12345,"name":"service-0012345","state":"running","team":"t17","zone":"eu-west-1"}`)}
	var dst []byte
	for b.Loop() {
		dst = d.AppendSortKey(dst[:0], r)
	}
}
