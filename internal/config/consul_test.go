package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/stream"
)

const everyKeyOfConsul = `
sources:
  mesh:
    type: consul
    address: "dns:///consul:8503"
    http_address: "consul:8501"
    consistency: stale
    tls: { server_name: consul }
    token_file: token
    probe_interval: 2s
    list_interval: 5m
    max_message_bytes: 1MiB
watches:
  artists:
    source: mesh
    resource_type: demo.v2.Artist
    tenancy: { partition: "*", namespace: team-a }
    name_prefix: a-
  config: { source: mesh, collection: kv, prefix: app/, values: json, datacenter: dc2, writable: true }
  web: { source: mesh, collection: health, service: web, filter_expression: "Service.Port == 80" }
  locks: { source: mesh, collection: kv, entries: true }
`

func TestConsulSource(t *testing.T) {
	c := parse(t, everyKeyOfConsul)
	got := c.Sources[0].Consul
	if got.TLS == nil || got.TLS.ServerName != "consul" {
		t.Errorf("TLS is %+v, want the server name consul", got.TLS)
	}
	got.TLS = nil
	if want := (consul.Config{
		HTTPAddress: "consul:8501", Consistency: consul.ConsistencyStale,
		Address: "dns:///consul:8503", TokenFile: "etc/token",
		ProbeInterval: 2 * time.Second, ListInterval: 5 * time.Minute, MaxMessageBytes: 1 << 20,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	want := consul.Resources{Type: "demo.v2.Artist", Tenancy: consul.Tenancy{Partition: "*", Namespace: "team-a"}, NamePrefix: "a-"}
	if w := c.Watches[0]; w.Consul != want || w.LabelsAt != "metadata" {
		t.Errorf("read %+v, labels at %q, want %+v, at metadata", w.Consul, w.LabelsAt, want)
	}
	want = consul.Resources{Collection: consul.KV, Datacenter: "dc2"}
	if w := c.Watches[1]; w.Consul != want || w.Prefix != "app/" || w.Values != stream.JSONValues || !w.Writable || w.LabelsAt != "" {
		t.Errorf("read %+v", w)
	}
	want = consul.Resources{Collection: consul.Health, Service: "web", FilterExpression: "Service.Port == 80"}
	if w := c.Watches[2]; w.Consul != want || w.LabelsAt != "meta" {
		t.Errorf("read %+v", w)
	}
	want = consul.Resources{Collection: consul.KV, Entries: true}
	if w := c.Watches[3]; w.Consul != want {
		t.Errorf("read %+v", w)
	}
}

func TestConsulSourceErrors(t *testing.T) {
	const right, artists = `address: "a:8502"`, "resource_type: demo.v2.Artist"
	for _, c := range []struct{ name, keys, watch, want string }{
		{"no address", `list_interval: 1m`, artists, "sources.mesh: want http_address, host:port"},
		{"no port", `address: consul`, artists, `sources.mesh.address: "consul": want host:port`},
		{"a URL", `address: "http://a:8500"`, artists, "the gRPC port of a Consul server or agent"},
		{"a token in the file", right + `, token: x`, artists, `unknown key "token" in sources.mesh`},
		{"no such file", right + `, token_file: nowhere`, artists, `sources.mesh.token_file: "nowhere" cannot be read`},
		{"too often", right + `, probe_interval: 10ms`, artists, "want a duration of at least 1s"},
		{"lists without end", right + `, list_interval: 10ms`, artists, "want a duration of at least 1s"},
		{"no type", right, "name_prefix: a", "watches.artists: resource_type is missing; want group.version.Kind, such as demo.v2.Artist, or another collection"},
		{"half a type", right, "resource_type: Artist", `watches.artists.resource_type: "Artist": want group.version.Kind`},
		{"a namespace in capitals", right, artists + ", tenancy: { namespace: Team }", `watches.artists.tenancy.namespace: "Team": want a name in lower case`},
		{"an unknown tenancy", right, artists + ", tenancy: { peer: a }", `unknown key "peer" in watches.artists.tenancy`},
		{"a prefix in capitals", right, artists + ", name_prefix: A", `watches.artists.name_prefix: "A": want lower-case letters`},
		{"no such collection", right, "collection: keys", `watches.artists.collection: "keys": want checks, health, intentions, kv, nodes, resource or services`},
		{"no HTTP address", right, "collection: kv", "watches.artists: the source has no http_address, which the collection kv needs; want host:port"},
		{"no gRPC address", `http_address: "a:8500"`, artists, "watches.artists: the source has no address, which the collection resource needs; want host:port"},
		{"a URL for HTTP", `http_address: "http://a:8500"`, artists, `sources.mesh.http_address: "http://a:8500": want host:port`},
		{"a consistency of gRPC", right + `, consistency: stale`, artists, "sources.mesh.consistency: consistency is for collections of the HTTP API"},
		{"no such consistency", `http_address: "a:8500", consistency: strong`, "collection: kv", `sources.mesh.consistency: "strong": want consistent or stale`},
		{"a service of keys", `http_address: "a:8500"`, "collection: kv, service: web", "watches.artists.service: service is for the collection health, and this one is kv"},
		{"a path as a service", `http_address: "a:8500"`, "collection: health, service: a/b", `watches.artists.service: "a/b": want the name of a service`},
		{"a type of keys", `http_address: "a:8500"`, "collection: kv, resource_type: demo.v2.Artist", "watches.artists.resource_type: resource_type is for the collection resource, and this one is kv"},
		{"a filter of keys", `http_address: "a:8500"`, "collection: kv, filter_expression: x", "filter_expression is for the collection"},
		{"a filter of all services", `http_address: "a:8500"`, "collection: health, filter_expression: x", "want service as well, or a view with filter"},
		{"a collection of another type", right, artists + ", bucket: a", "bucket is for watches of nats sources"},
		{"writes to resources", right, artists + ", writable: true", "watches.artists.writable: of consul, only the collection kv takes writes"},
		{"writes to the catalog", `http_address: "a:8500"`, "collection: nodes, writable: true", "watches.artists.writable: of consul, only the collection kv takes writes"},
		{"entries of the catalog", `http_address: "a:8500"`, "collection: nodes, entries: true", "watches.artists.entries: entries is for the collection kv, and this one is nodes"},
		{"writes to entries", `http_address: "a:8500"`, "collection: kv, entries: true, writable: true", "watches.artists.writable: whole entries cannot be written"},
		{"a key of another type", right, artists + ", prefix: a", "watches.artists.prefix: prefix is for the collection kv, and this one is resource"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "sources: { mesh: { type: consul, " + c.keys + " } }\nwatches: { artists: { source: mesh, " + c.watch + " } }\n"
			_, err := Parse("etc/gateway.yaml", []byte(text), fakeEnvironment())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
