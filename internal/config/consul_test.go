package config

import (
	"github.com/watchtide/watchtide/internal/source/consul"
	"reflect"
	"strings"
	"testing"
	"time"
)

const everyKeyOfConsul = `
sources:
  mesh:
    type: consul
    address: "dns:///consul:8503"
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
`

func TestConsulSource(t *testing.T) {
	c := parse(t, everyKeyOfConsul)
	got := c.Sources[0].Consul
	if got.TLS == nil || got.TLS.ServerName != "consul" {
		t.Errorf("TLS is %+v, want the server name consul", got.TLS)
	}
	got.TLS = nil
	if want := (consul.Config{
		Address: "dns:///consul:8503", TokenFile: "etc/token",
		ProbeInterval: 2 * time.Second, ListInterval: 5 * time.Minute, MaxMessageBytes: 1 << 20,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	want := consul.Resources{Type: "demo.v2.Artist", Tenancy: consul.Tenancy{Partition: "*", Namespace: "team-a"}, NamePrefix: "a-"}
	if w := c.Watches[0].Consul; w != want {
		t.Errorf("read %+v, want %+v", w, want)
	}
}

func TestConsulSourceErrors(t *testing.T) {
	const right, artists = `address: "a:8502"`, "resource_type: demo.v2.Artist"
	for _, c := range []struct{ name, keys, watch, want string }{
		{"no address", `list_interval: 1m`, artists, "sources.mesh: address is missing, which a source of type consul must have"},
		{"no port", `address: consul`, artists, `sources.mesh.address: "consul": want host:port`},
		{"a URL", `address: "http://a:8500"`, artists, "the gRPC port of a Consul server or agent"},
		{"a token in the file", right + `, token: x`, artists, `unknown key "token" in sources.mesh`},
		{"no such file", right + `, token_file: nowhere`, artists, `sources.mesh.token_file: "nowhere" cannot be read`},
		{"too often", right + `, probe_interval: 10ms`, artists, "want a duration of at least 1s"},
		{"lists without end", right + `, list_interval: 10ms`, artists, "want a duration of at least 1s"},
		{"no type", right, "name_prefix: a", "watches.artists: resource_type is missing; want group.version.Kind, such as demo.v2.Artist"},
		{"half a type", right, "resource_type: Artist", `watches.artists.resource_type: "Artist": want group.version.Kind`},
		{"a namespace in capitals", right, artists + ", tenancy: { namespace: Team }", `watches.artists.tenancy.namespace: "Team": want a name in lower case`},
		{"an unknown tenancy", right, artists + ", tenancy: { peer: a }", `unknown key "peer" in watches.artists.tenancy`},
		{"a prefix in capitals", right, artists + ", name_prefix: A", `watches.artists.name_prefix: "A": want lower-case letters`},
		{"a key of another type", right, artists + ", prefix: a", "prefix is for watches of"},
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
