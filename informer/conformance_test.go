package informer

import (
	"context"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream/sourcetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"
)

// text is the name of an annotation that is the value of an object.
const text = "text"

func object(key, value string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: path.Dir(key), Name: path.Base(key), Annotations: map[string]string{text: value}},
	}
}

func textOf(object any) ([]byte, error) {
	return []byte(object.(*metav1.PartialObjectMetadata).Annotations[text]), nil
}

// upstream is a server in memory, and an informer of it.
type upstream struct {
	*cachetest.FakeControllerSource
	informer cache.SharedIndexInformer
	stop     func() // stops the informer, and waits for it
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{FakeControllerSource: cachetest.NewFakeControllerSource()}
	u.informer = cache.NewSharedIndexInformer(u, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { u.informer.RunWithContext(ctx) })
	u.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(func() {
		u.stop()
		u.Shutdown()
	})
	return u
}

// put returns once the informer has the object: it is the upstream of the source, and not the server.
func (u *upstream) put(key, value string) error {
	u.Modify(object(key, value)) // which creates what is missing
	return u.await(key, value)
}

func (u *upstream) delete(key string) error {
	u.Delete(object(key, ""))
	return u.await(key, "")
}

// await waits until the informer has a value; "": none.
func (u *upstream) await(key, value string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(sourcetest.Timeout)
	defer late.Stop()
	for {
		now := ""
		if o, there, err := u.informer.GetStore().GetByKey(key); err != nil {
			return err
		} else if there {
			now = o.(*metav1.PartialObjectMetadata).Annotations[text]
		}
		if now == value {
			return nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("the informer has %q of %s, want %q", now, key, value)
		}
	}
}

func TestConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) *sourcetest.Harness {
		u := newUpstream(t)
		return &sourcetest.Harness{
			Source: New(u.informer, Options{Value: textOf}),
			Key:    func(i int) string { return fmt.Sprintf("space%d/name%d", i%2, i) },
			Put:    u.put,
			Delete: u.delete,
		}
	})
}
