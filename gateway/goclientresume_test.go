package gateway

import (
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
		c, err := client.New("http://gateway", client.Options{Transport: r.client.Transport})
		if err != nil {
			t.Fatal(err)
		}
		replica, bookmark := client.NewReplica("services"), false
		// What the client has from before.
		for _, of := range []client.EventType{client.Hello, client.Reset, client.EndOfSnapshot} {
			_ = replica.Apply(client.Event{Type: of, Watch: "services", ID: "services@_e1-20~3x9qz"})
		}
		for e, err := range c.Watch(t.Context(), "services", client.From("services@_e1-20~3x9qz"), client.UntilEndOfSnapshot()) {
			if err != nil {
				t.Fatal(err)
			}
			bookmark = bookmark || e.Type == client.Bookmark
			_ = replica.Apply(e)
			if strings.Contains(e.ID, "/") && !replica.Progress().Pending {
				t.Errorf("consistent in the middle of a catch-up, at %s, with %d resources", e.ID, replica.Len())
			}
		}
		if !bookmark {
			t.Error("the resume does not begin with a bookmark")
		}
		if replica.Progress().Pending || replica.Len() == 0 {
			t.Errorf("%d resources after the resume, and %+v", replica.Len(), replica.Progress())
		}
	})
}
