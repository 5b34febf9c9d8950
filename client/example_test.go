package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/watchtide/watchtide/client"
)

// gateway serves the watch services: a snapshot, one change, and then nothing more.
func gateway() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `event: hello
data: {"type":"hello","heartbeat_ms":15000,"watches":[{"watch":"services","mode":"snapshot"}]}

event: reset
data: {"type":"reset","watch":"services","reason":"initial"}

event: upsert
data: {"type":"upsert","watch":"services","key":"web","revision":"1","value":{"port":80}}

event: end_of_snapshot
data: {"type":"end_of_snapshot","watch":"services","revision":"1","count":1}
id: services@e-1

event: upsert
data: {"type":"upsert","watch":"services","key":"web","revision":"2","value":{"port":8080}}
id: services@e-2

`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
}

// Follow a watch until there is enough.
func ExampleClient_Watch() {
	server := gateway()
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for change, err := range c.Watch(context.Background(), "services") {
		if err != nil {
			log.Fatal(err)
		}
		switch change.Type {
		case client.Reset:
			fmt.Println("a snapshot begins:", change.Reason)
		case client.Upsert:
			fmt.Println(change.Key, "=", string(change.Value))
		case client.Delete:
			fmt.Println(change.Key, "is gone")
		case client.EndOfSnapshot:
			fmt.Println("complete at revision", change.Revision)
		case client.Status:
			fmt.Println(change.State, change.Reason)
		}
		if change.ID == "services@e-2" {
			break
		}
	}
	// Output:
	// a snapshot begins: initial
	// web = {"port":80}
	// complete at revision 1
	// web = {"port":8080}
}

// Keep a copy of a watch.
func ExampleClient_Replica() {
	server := gateway()
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	services := c.Replica(context.Background(), "services")
	defer services.Close()
	for {
		changed := services.Changed()
		if services.Revision() == "2" {
			break
		}
		<-changed
	}
	for key, service := range services.All() {
		fmt.Println(key, "=", string(service.Value))
	}
	fmt.Println(services.Freshness().State)
	// Output:
	// web = {"port":8080}
	// in_sync
}

// Keep a copy of a watch, as values of a type of the program.
func ExampleReplicaOf() {
	type Service struct{ Port int }

	server := gateway()
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	services := client.ReplicaOf[Service](context.Background(), c, "services", client.View{Labels: "app=web"})
	defer services.Close()
	if err := services.Ready(context.Background()); err != nil {
		log.Fatal(err)
	}
	web, found := services.Get("web")
	fmt.Println(found, web.Port == 80 || web.Port == 8080)
	// Output:
	// true true
}

// Each kind of change, and the place to store a position.
func ExampleClient_Watch_changes() {
	follow := func(ctx context.Context, c *client.Client) error {
		for change, err := range c.Watch(ctx, "services", client.View{Labels: "app=web"}) {
			if err != nil {
				return err // the loop has ended: why
			}
			switch change.Type {
			case client.Reset: // a snapshot begins: forget what you have
			case client.Upsert: // change.Key has change.Value
			case client.Delete: // change.Key is gone
			case client.EndOfSnapshot: // what you have is complete
			case client.Status: // change.State and change.Reason: how fresh it is
			}
			if change.ID != "" {
				// What came up to here belongs together: make it visible, and store the ID with it.
			}
		}
		return nil
	}
	_ = follow
}
