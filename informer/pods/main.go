// Command pods serves the pods of a cluster on http://127.0.0.1:8080/, with a page that shows them live.
package main

import (
	"context"
	"embed"
	"log"
	"net/http"
	"os"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/informer"
	"github.com/watchtide/watchtide/stream/watch"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/clientcmd"
)

//go:embed index.html
var page embed.FS

func main() {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	log.Fatal(serve(context.Background(), "127.0.0.1:8080", os.Getenv("KUBECONFIG"), pods))
}

func serve(ctx context.Context, address, kubeconfig string, objects schema.GroupVersionResource) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	pods := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0).ForResource(objects).Informer()
	go pods.RunWithContext(ctx)
	registry := watch.NewRegistry()
	defer registry.Close()
	if _, err := registry.Add(watch.Config{Name: "pods", SourceName: "informer", Source: informer.New(pods, informer.Options{})}); err != nil {
		return err
	}
	g, err := gateway.New(gateway.Config{Registry: registry})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(page))
	mux.Handle("/v1/", g.Handler())
	server := &http.Server{Addr: address, Handler: mux}
	context.AfterFunc(ctx, func() { g.Drain(); _ = server.Close() })
	return server.ListenAndServe()
}
