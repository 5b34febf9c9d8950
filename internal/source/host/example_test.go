package host_test

import (
	"context"
	"fmt"

	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/stream"
)

func ExampleNew() {
	_, err := host.New(host.Config{Collection: "process"})
	fmt.Println(err)
	// Output: collection "process": want "processes", "interfaces" or "mounts"
}

// printer is a sink that prints the keys of the first snapshot and then stops.
type printer struct {
	stream.PlainSink
	stop context.CancelFunc
}

func (printer) Reset(string) error                { return nil }
func (printer) Upsert(r stream.Resource) error    { fmt.Println(r.Key); return nil }
func (printer) Delete(string, uint64) error       { return nil }
func (p printer) Commit(uint64) error             { p.stop(); return nil }
func (printer) Status(stream.State, string) error { return nil }

// Ingest calls Watch; to try a source by itself, any sink will do.
func ExampleSource_Watch() {
	source, err := host.New(host.Config{Collection: host.Mounts})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	_ = source.Watch(ctx, stream.Resume{}, printer{stop: cancel})
}
