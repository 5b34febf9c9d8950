// Package envoy checks deploy/envoy.yaml against the definitions of Envoy.
package envoy

import (
	"os"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestConfiguration decodes the file strictly, and what is in its Any messages too, checks
// the rules of the definitions, and that the route leads to the cluster.
func TestConfiguration(t *testing.T) {
	text, err := os.ReadFile("../envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	var b bootstrap.Bootstrap
	if err := protojson.Unmarshal(document, &b); err != nil {
		t.Fatal(err)
	}
	if err := b.ValidateAll(); err != nil {
		t.Error(err)
	}
	chain := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0]
	m, context := new(manager.HttpConnectionManager), new(tls.DownstreamTlsContext)
	unpack(t, chain.GetFilters()[0].GetTypedConfig(), m)
	unpack(t, chain.GetTransportSocket().GetTypedConfig(), context)
	route := m.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()[0].GetRoute()
	if cluster := b.GetStaticResources().GetClusters()[0]; route.GetCluster() != cluster.GetName() || cluster.GetLoadAssignment().GetClusterName() != cluster.GetName() {
		t.Errorf("the route leads to %q, and the cluster is %q", route.GetCluster(), cluster.GetName())
	}
	if d := route.GetTimeout(); d == nil || d.AsDuration() != 0 {
		t.Errorf("the route ends a stream after %v, want 0s: never", d)
	}
}

// unpack decodes and checks the message of an Any.
func unpack(t *testing.T, from *anypb.Any, into interface {
	proto.Message
	ValidateAll() error
}) {
	t.Helper()
	if err := from.UnmarshalTo(into); err != nil {
		t.Fatal(err)
	}
	if err := into.ValidateAll(); err != nil {
		t.Error(err)
	}
}
