//go:build servers

package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/watchtide/watchtide/internal/streamtest/figures"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// BenchmarkUpstream measures the source beside client-go's dynamic client alone:
// see package figures.
func BenchmarkUpstream(b *testing.B) {
	k := ownCluster(b).kind(true)
	c := k.config()
	c.StallAfter = 0
	figures.Run(b, figures.Rig{
		Resources: 20_000, Writes: 5_000,
		Source: mustNew(b, c),
		Load: func(ctx context.Context, n int, value []byte) error {
			return figures.Parallel(ctx, n, func(ctx context.Context, i int) error {
				_, err := k.put(ctx, "default", measuredName(i), wrapped(string(value)))
				return err
			})
		},
		Put: func(ctx context.Context, i int, value []byte) error {
			return k.change(ctx, measuredName(i), wrapped(string(value)))
		},
		Raw: func(ctx context.Context, primed func(), changed func([]byte)) error {
			return k.follow(ctx, &c, primed, changed)
		},
	})
}

func measuredName(i int) string { return fmt.Sprintf("object-%06d", i) }

// change changes an object that exists.
func (k *kind) change(ctx context.Context, name, spec string) error {
	answer, code, err := k.tryWithin(ctx, http.MethodPatch, k.collection("default")+"/"+name, `{"spec":`+spec+`}`)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d %s", code, answer)
	}
	return err
}

// follow is a program that uses only the library.
func (k *kind) follow(ctx context.Context, c *Config, primed func(), changed func(value []byte)) error {
	loaded, err := c.load()
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(loaded)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	all, err := dynamic.NewForConfigAndClient(loaded, client)
	if err != nil {
		return err
	}
	resource := all.Resource(schema.GroupVersionResource{Group: k.group, Version: "v1", Resource: k.plural})
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	values := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		values[list.Items[i].GetName()] = &list.Items[i]
	}
	watch, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer watch.Stop()
	primed()
	for e := range watch.ResultChan() {
		object, ok := e.Object.(*unstructured.Unstructured)
		if ctx.Err() != nil {
			break // which the library reports as an event
		}
		if !ok {
			return fmt.Errorf("the watch sends %v", e)
		}
		values[object.GetName()] = object
		text, _, _ := unstructured.NestedString(object.Object, "spec", "text")
		changed([]byte(text))
	}
	return ctx.Err()
}
