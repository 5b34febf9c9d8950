package informer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/informer"
	"github.com/watchtide/watchtide/stream/watch"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"
)

// Each user sees the namespaces that are named like a group of theirs.
func ExampleNew_namespaces() {
	server := cachetest.NewFakeControllerSource() // in place of a cluster
	for _, namespace := range []string{"bank", "shop"} {
		server.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}})
	}
	pods := cache.NewSharedIndexInformer(server, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); pods.RunWithContext(ctx) }()
	defer func() { cancel(); <-ended; server.Shutdown() }()

	registry := watch.NewRegistry()
	defer registry.Close()
	w, err := registry.Add(watch.Config{Name: "pods", SourceName: "informer", Source: informer.New(pods, informer.Options{})})
	check(err)
	check(w.Prime(ctx))

	policy, err := access.CompilePolicy(access.PolicyConfig{
		Roles: []access.Role{{Name: "user", When: `principal.name != ""`}},
		Watches: []access.WatchRules{{Name: "pods", Rules: []access.Rule{
			{Role: "user", Read: "value.metadata.namespace in principal.groups"},
		}}},
	})
	check(err)
	secret, line, err := access.NewToken("ann", []string{"shop"}) // the tokens of a provider are in credential.Config as well
	check(err)
	tokens, err := access.ParseTokens([]byte(line))
	check(err)
	g, err := gateway.New(gateway.Config{
		Registry: registry,
		Access:   &gateway.Access{Policy: policy, Credentials: credential.Config{Tokens: tokens}},
	})
	check(err)
	served := httptest.NewServer(g.Handler())
	defer served.Close()

	request, err := http.NewRequest(http.MethodGet, served.URL+"/v1/watches/pods/resources", nil)
	check(err)
	request.Header.Set("Authorization", "Bearer "+secret)
	answer, err := served.Client().Do(request)
	check(err)
	defer answer.Body.Close()
	var page struct{ Resources []struct{ Key string } }
	check(json.NewDecoder(answer.Body).Decode(&page))
	fmt.Println(page.Resources)
	// Output: [{shop/web}]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
