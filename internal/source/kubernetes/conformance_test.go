//go:build servers

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/watchtide/watchtide/stream/sourcetest"
	"path"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/realserver"
	"github.com/watchtide/watchtide/stream"
)

// The suite writes arbitrary JSON values and expects them back byte for byte. In
// Kubernetes they are part of an object, which the server writes in its own way.
// So they are stored in the object as text, and extracted on their way to the
// suite. The other tests cover the rest of an object.

// unwrapped is a source whose values are the texts in the objects.
type unwrapped struct{ stream.Source }

func (u unwrapped) Watch(ctx context.Context, resume stream.Resume, sink stream.Sink) error {
	return u.Source.Watch(ctx, resume, unwrappedSink{sink})
}

type unwrappedSink struct{ stream.Sink }

func (u unwrappedSink) Upsert(r stream.Resource) error {
	var object struct {
		Spec struct{ Text string }
	}
	if err := json.Unmarshal(r.Value, &object); err != nil {
		return err
	}
	r.Value = []byte(object.Spec.Text)
	return u.Sink.Upsert(r)
}

func wrapped(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return `{"text":` + string(quoted) + `}`
}

// legalName returns a name that Kubernetes accepts, odd ones included.
func legalName(i int) string {
	return fmt.Sprintf([]string{"plain%d", "with-dash-%d", "with.dots.%d", "0digit%d", "x--y%d", "a%d"}[i%6], i)
}

// TestConformance uses one server and one resource for the whole suite, emptied
// for each test.
func TestConformance(t *testing.T) {
	t.Parallel()
	k := ownCluster(t).kind(true)
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		return harness(t, k)
	})
}

func harness(t *testing.T, shared *kind) *sourcetest.Harness {
	k := shared.in(t)
	k.clear()
	proxy := realserver.NewProxy(t, k.server.Addr())
	return &sourcetest.Harness{
		Source: unwrapped{mustNew(t, k.configAt(proxy.Addr()))},
		Key:    func(i int) string { return fmt.Sprintf("space%d/%s", i%2, legalName(i)) },
		Put: func(key, value string) error {
			_, err := k.put(t.Context(), path.Dir(key), path.Base(key), wrapped(value))
			return err
		},
		Delete:     func(key string) error { return k.delete(t.Context(), path.Dir(key), path.Base(key)) },
		Disconnect: proxy.Cut,
		Restart:    k.restart,
		Restore:    k.wipe,
		Resumes:    true,
	}
}
