package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/store"
	"github.com/watchtide/watchtide/stream/watch"
)

// colours is a source of two resources that never change: enough to try a gateway.
// docs/writing-a-source.md shows a real one.
var colours = stream.SourceFunc(func(ctx context.Context, _ stream.Resume, sink stream.Sink) error {
	if err := sink.Reset("v1"); err != nil {
		return err
	}
	for i, name := range []string{"blue", "green"} {
		value := fmt.Appendf(nil, `{"name":%q}`, name)
		if err := sink.Upsert(stream.Resource{Key: name, Revision: uint64(i) + 1, Value: value}); err != nil {
			return err
		}
	}
	if err := sink.Commit(2); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
})

// A gateway in your own server: the registry, a watch and the handler. At the end the
// streams stop first, then the server.
func ExampleNew() {
	registry := watch.NewRegistry()
	defer registry.Close()
	w, err := registry.Add(watch.Config{Name: "colours", SourceName: "memory", Source: colours})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Prime(context.Background()); err != nil { // or serve at once: streams say "priming"
		fmt.Println(err)
		return
	}
	g, err := gateway.New(gateway.Config{Registry: registry, Instance: "one", StreamSettings: gateway.StreamSettings{DrainDelay: -1, Drain: -1}}) // goodbyes at once
	if err != nil {
		fmt.Println(err)
		return
	}

	mux := http.NewServeMux()
	mux.Handle("/live/", http.StripPrefix("/live", g.Handler()))
	server := httptest.NewServer(mux)
	defer server.Close()
	defer g.Drain() // before the server: streams do not end by themselves

	response, err := server.Client().Get(server.URL + "/live/v1/watches/colours/events?format=ndjson")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for range 7 {
		lines.Scan()
		fmt.Println(lines.Text())
	}
	// Output:
	// {"type":"hello","heartbeat_ms":15000,"instance":"one","watches":[{"watch":"colours","mode":"snapshot"}]}
	// {"type":"reset","watch":"colours","reason":"initial"}
	// {"type":"position","id":"colours@v1-0/2"}
	// {"type":"upsert","watch":"colours","key":"blue","revision":"1","value":{"name":"blue"}}
	// {"type":"upsert","watch":"colours","key":"green","revision":"2","value":{"name":"green"}}
	// {"type":"end_of_snapshot","watch":"colours","revision":"2","count":2}
	// {"type":"position","id":"colours@v1-2"}
}

// A gateway that serves HTTP and gRPC on its own until the context ends. The watch is
// a store, which can be written to.
func ExampleGateway_Serve() {
	registry := watch.NewRegistry()
	defer registry.Close()
	notes := store.New(store.Config{MaxBytes: 1 << 20})
	if _, err := registry.Add(watch.Config{
		Name: "notes", SourceName: "local", Source: notes.Source("notes"), Writer: notes.Writer("notes"),
	}); err != nil {
		fmt.Println(err)
		return
	}
	g, err := gateway.New(gateway.Config{Registry: registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx, gateway.Listeners{HTTP: listener}) }()

	// A write in this process is seen by every subscriber.
	_, _, err = notes.Writer("notes").Put(ctx, stream.PutRequest{Key: "milk", Value: []byte(`"two litres"`)})
	fmt.Println("written:", err)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://" + listener.Addr().String() + "/v1/watches/notes/changes")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	fmt.Println(response.Status, len(body) > 0)

	stop()
	fmt.Println("served:", <-served)
	// Output:
	// written: <nil>
	// 200 OK true
	// served: <nil>
}
