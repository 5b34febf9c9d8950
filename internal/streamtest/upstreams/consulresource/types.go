package main

import (
	"reflect"

	"github.com/hashicorp/consul/proto-public/pbresource"
	pbdemov1 "github.com/hashicorp/consul/proto/private/pbdemo/v1"
	pbdemov2 "github.com/hashicorp/consul/proto/private/pbdemo/v2"
	"google.golang.org/protobuf/proto"
)

// Scopes of Consul's resource types, by its own numbers.
const (
	partitionScope = 2
	namespaceScope = 3
)

// resourceType is one type of resource.
type resourceType struct {
	group, version, kind string
	message              proto.Message
	scope                int64
}

// demoTypes are types that every Consul server has.
var demoTypes = []resourceType{
	{"demo", "v1", "Artist", &pbdemov1.Artist{}, namespaceScope},
	{"demo", "v1", "Concept", &pbdemov1.Concept{}, namespaceScope},
	{"demo", "v1", "RecordLabel", &pbdemov1.RecordLabel{}, partitionScope},
	{"demo", "v2", "Artist", &pbdemov2.Artist{}, namespaceScope},
	{"demo", "v2", "Album", &pbdemov2.Album{}, namespaceScope},
}

// register registers a type with a registry of Consul's. It uses reflection,
// since the package that names the registry's types is internal to Consul.
func register(registry any, t resourceType) {
	call := reflect.ValueOf(registry).MethodByName("Register")
	r := reflect.New(call.Type().In(0)).Elem()
	r.FieldByName("Type").Set(reflect.ValueOf(&pbresource.Type{
		Group: t.group, GroupVersion: t.version, Kind: t.kind,
	}))
	r.FieldByName("Proto").Set(reflect.ValueOf(t.message))
	r.FieldByName("Scope").SetInt(t.scope)
	call.Call([]reflect.Value{r})
}
