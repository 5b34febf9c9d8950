package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/watchtide/watchtide/client"
	"github.com/watchtide/watchtide/gateway/internal/gatewaytest"
	"github.com/watchtide/watchtide/stream"
)

// TestGoClientInAResume: a client of the Go package that comes from another replica follows a watch
// whose deletes have no revisions. The resume begins with a bookmark, at which what it holds is not
// consistent yet.
func TestGoClientInAResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{}, "services")
		r.Do("services", func(sink stream.Sink) error {
			return errors.Join(sink.Reset("_e1"), sink.Commit(10))
		})
		synctest.Wait()
		for revision := uint64(11); revision < 60; revision++ {
			r.Commit("services", revision, gatewaytest.Resource(fmt.Sprint("k", revision), revision, `"`+strings.Repeat("x", 8<<10)+`"`))
			synctest.Wait()
		}
		text := r.get("/v1/watches/services/events?until=end_of_snapshot", "Accept: text/event-stream", "Last-Event-ID: services@_e1-20~3x9qz").Text()
		if !strings.Contains(text, "event: bookmark") {
			t.Fatalf("the resume does not begin with a bookmark: %.300s", text)
		}
		replica, tail := client.NewReplica(), client.Tail{}
		// What the client has from before.
		for _, e := range []client.Event{{Type: "hello"}, {Type: "reset"}, {Type: "end_of_snapshot"}} {
			replica.Apply(e)
		}
		for _, frame := range strings.Split(text, "\n\n") {
			var e client.Event
			_, data, ok := strings.Cut(frame, "data: ")
			if !ok {
				continue
			}
			data, id, _ := strings.Cut(data, "\nid: ")
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == "hello" {
				replica.Apply(e)
				continue
			}
			events := tail.Take(e)
			if id != "" {
				events = append(events, tail.Commit()...)
			}
			for _, e := range events {
				replica.Apply(e)
			}
			if strings.Contains(id, "/") && replica.Consistent() {
				t.Errorf("consistent in the middle of a catch-up, at %s, with %d resources", id, replica.Count())
			}
		}
		if !replica.Consistent() {
			t.Error("not consistent after the resume")
		}
	})
}
