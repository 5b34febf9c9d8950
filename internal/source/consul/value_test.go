package consul

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	pbmulticluster "github.com/hashicorp/consul/proto-public/pbmulticluster/v2"
	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestRender(t *testing.T) {
	known, err := anypb.New(&pbmulticluster.ExportedServices{Services: []string{"web", "db"}})
	if err != nil {
		t.Fatal(err)
	}
	const id = `{"id":{"uid":"a","name":"a","type":{"group":"demo","groupVersion":"v2","kind":"Artist"},` +
		`"tenancy":{"partition":"default","namespace":"default"}},"version":"5"`
	full := one("a@5")
	full.Owner = &pbresource.ID{Name: "owner"}
	full.Generation = "01M7"
	full.Metadata = map[string]string{"b": "2 > 1", "a": "line\nbreak \u2028"}
	full.Status = map[string]*pbresource.Status{"controller": {
		ObservedGeneration: "01M6", UpdatedAt: timestamppb.New(timestamppb.Now().AsTime().Truncate(0)),
		Conditions: []*pbresource.Condition{{Type: "ok", State: pbresource.Condition_STATE_TRUE, Resource: &pbresource.Reference{Name: "x"}}},
	}}
	full.Status["controller"].UpdatedAt = &timestamppb.Timestamp{Seconds: 1}
	for _, c := range []struct {
		name string
		data *anypb.Any
		of   *pbresource.Resource
		want string
	}{
		{"nothing", nil, one("a@5"), id + `}`},
		{"a private type", &anypb.Any{TypeUrl: "type.googleapis.com/x.Y", Value: []byte{0, 255, 1}}, one("a@5"),
			id + `,"data":{"@type":"type.googleapis.com/x.Y","value":"AP8B"}}`},
		{"a public type", known, one("a@5"),
			id + `,"data":{"@type":"type.googleapis.com/hashicorp.consul.multicluster.v2.ExportedServices","services":["web","db"]}}`},
		{"bytes that are not of the type", &anypb.Any{TypeUrl: known.TypeUrl, Value: []byte{255}}, one("a@5"),
			id + `,"data":{"@type":"type.googleapis.com/hashicorp.consul.multicluster.v2.ExportedServices","value":"/w=="}}`},
		{"no type at all", &anypb.Any{Value: []byte("x")}, one("a@5"), id + `,"data":{"@type":"","value":"eA=="}}`},
		{"everything", nil, full, `{"id":{"uid":"a","name":"a","type":{"group":"demo","groupVersion":"v2","kind":"Artist"},` +
			`"tenancy":{"partition":"default","namespace":"default"}},"owner":{"name":"owner"},"version":"5","generation":"01M7",` +
			`"metadata":{"a":"line\nbreak ` + "\u2028" + `","b":"2 > 1"},"status":{"controller":{"observedGeneration":"01M6",` +
			`"conditions":[{"type":"ok","state":"STATE_TRUE","resource":{"name":"x"}}],"updatedAt":"1970-01-01T00:00:01Z"}}}`},
		{"an empty resource", &anypb.Any{TypeUrl: "x"}, &pbresource.Resource{}, `{"data":{"@type":"x","value":""}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.of.Data = c.data
			got, err := render(c.of)
			if err != nil || string(got) != c.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
			}
			if !proto.Equal(c.of.Data, c.data) {
				t.Error("the resource was changed")
			}
		})
	}
}

// FuzzRender: the output is one line of JSON, equal to Consul's own JSON of the
// resource except for the data.
func FuzzRender(f *testing.F) {
	f.Add("a", "key", "value", "type.googleapis.com/x", []byte("x"))
	f.Add("é", "\u2028", "\"\\\n", "", []byte(nil))
	f.Fuzz(func(t *testing.T, name, key, value, url string, data []byte) {
		r := &pbresource.Resource{
			Id: &pbresource.ID{Name: name}, Version: "1",
			Metadata: map[string]string{key: value}, Data: &anypb.Any{TypeUrl: url, Value: data},
		}
		out, err := render(r)
		if err != nil {
			if _, refused := proto.Marshal(r); refused == nil {
				t.Fatalf("%v, of what can be sent", err)
			}
			return
		}
		if strings.ContainsAny(string(out), "\r\n") {
			t.Fatalf("more than one line: %q", out)
		}
		var got, want map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		delete(got, "data")
		r.Data = nil
		own, err := protojson.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(own, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: got %v, want %v", err, got, want)
		}
	})
}

// FuzzParseType: a valid type is written as it was read.
func FuzzParseType(f *testing.F) {
	for _, name := range []string{artistType, "multicluster.v2.ExportedServices", "catalog.v2beta1.Service", "a.b.c", "", "demo.v2.", "demo.v2.artist"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		typ, err := ParseType(name)
		if err != nil {
			return
		}
		if again := typ.Group + "." + typ.GroupVersion + "." + typ.Kind; again != name {
			t.Errorf("%q was read as %q", name, again)
		}
	})
}

func TestParseType(t *testing.T) {
	for name, want := range map[string]bool{
		artistType: true, "multicluster.v2beta1.ExportedServices": true, "my_group.v1.Thing": true,
		"": false, "Artist": false, "demo.v2": false, "demo.2.Artist": false, "Demo.v2.Artist": false, "demo.v2.artist": false,
		"demo.v2.Artist ": false, "demo.v2.Artist.x": false, "demo..Artist": false,
	} {
		if _, err := ParseType(name); (err == nil) != want {
			t.Errorf("ParseType(%q): %v", name, err)
		}
	}
}

// TestKeys: a key is parsed as it was built, whatever the scope of the type.
func TestKeys(t *testing.T) {
	s := newSource(t, Config{Address: "a:1"})
	for _, c := range []struct{ partition, namespace, key string }{
		{"default", "default", "default/default/web"}, {"part", "", "part/web"}, {"", "", "web"},
	} {
		id := &pbresource.ID{Name: "web", Type: s.ofType(), Tenancy: &pbresource.Tenancy{Partition: c.partition, Namespace: c.namespace}}
		if got := keyOf(id); got != c.key {
			t.Errorf("the key is %q, want %q", got, c.key)
		}
		if again := s.idOf(c.key); !proto.Equal(again, id) {
			t.Errorf("%q is of %v, want %v", c.key, again, id)
		}
	}
}
