package informer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/informer"
	"github.com/watchtide/watchtide/stream/watch"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"
)

// A program that has an informer follows it as a watch. The gateway serves it with gateway.New.
func ExampleNew() {
	server := cachetest.NewFakeControllerSource() // in place of a cluster
	server.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}})
	pods := cache.NewSharedIndexInformer(server, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); pods.RunWithContext(ctx) }()

	registry := watch.NewRegistry()
	w, err := registry.Add(watch.Config{Name: "pods", SourceName: "informer", Source: informer.New(pods, informer.Options{})})
	if err == nil {
		err = w.Prime(ctx)
	}
	if err != nil {
		fmt.Println(err)
	}
	for r := range w.Snapshot().Resources() {
		fmt.Println(r.Key)
	}

	registry.Close()
	cancel()
	<-ended
	server.Shutdown()
	// Output: shop/cart
}
