package config

import (
	"crypto/tls"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/internal/source/consul"
	"net/netip"
	"reflect"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// decoder reads one configuration, and records what its parts must know of each other. Owned by
// Parse.
type decoder struct {
	*decode.Decoder
	flags    Flags
	declared map[string]SourceType    // of every source; empty for one with an error
	stores   map[string]string        // names of the sources of stores, by path
	consuls  map[string]consul.Config // sources of Consul without an error, by name
	watches  map[string]declaredWatch
	lineage  *lineage // of the watches
	named    []string // all watches, those with errors too
	circles  []string // those that were reported, by the first name

	impersonates []impersonates // of watches whose writes need a principal

	definitions map[string]*view.Definition // of views
	groupings   map[string]*view.Grouping   // of those that count
	places      map[string]decode.Value     // of roles and rules, and of their keys, by path
	templatings map[string]*templating      // of templates without an error
	template    *templating                 // that is being read; nil: none is
}

func newDecoder(file string, env Environment) *decoder {
	env = env.withDefaults()
	d := &decoder{
		flags: env.Flags, declared: map[string]SourceType{}, stores: map[string]string{}, consuls: map[string]consul.Config{}, watches: map[string]declaredWatch{},
		lineage: &lineage{}, definitions: map[string]*view.Definition{}, groupings: map[string]*view.Grouping{}, templatings: map[string]*templating{},
		places: map[string]decode.Value{},
	}
	d.Decoder = decode.New(file, decode.Inputs{Getenv: env.Getenv, ReadFile: env.ReadFile, Stat: env.Stat}, kinds, d)
	return d
}

// impersonates is the key of a watch, and its source.
type impersonates struct {
	decode.Value
	source string
}

// reader is a type that reads itself from a value.
type reader interface {
	read(d *decoder, v decode.Value, k decode.Key)
}

// checked is a section whose keys depend on each other. check runs after all of
// them have been read; at is the place of the section's own key.
type checked interface {
	check(d *decoder, at decode.Value)
}

// ReadType reads the value of a key whose type is one of the configuration.
func (d *decoder) ReadType(v decode.Value, k decode.Key) bool {
	switch into := k.Into.(type) {
	case *netip.Prefix:
		d.readNetwork(v, into)
	case **tls.Config:
		*into = d.readTLS(v, k.Server)
	case *adapter.Secret:
		*into = adapter.Secret(d.ReadLine(v, secretLine))
	case *adapter.Metadata:
		d.readMetadata(v, k, into)
	case *Auth:
		d.readAuth(v, into)
	case reader:
		into.read(d, v, k)
	default:
		if k.Named {
			d.readNamed(v, k, reflect.ValueOf(k.Into).Elem())
		}
		return k.Named
	}
	return true
}

// CheckSection reports mistakes between the keys of a section.
func (d *decoder) CheckSection(section any, at decode.Value) {
	if c, ok := section.(checked); ok {
		c.check(d, at)
	}
}

// readNamed reads a mapping from names, in the order of the file.
func (d *decoder) readNamed(v decode.Value, k decode.Key, list reflect.Value) {
	entries, _ := d.Entries(v)
	for _, e := range entries {
		_, watch := reflect.Zero(list.Type().Elem()).Interface().(Watch)
		if stream.CheckWatchName(e.Name) != nil && !(watch && decode.IsName(e.Name)) {
			d.Errorf(decode.Value{Node: e.Key}, "%q: want %s", e.Name, texts["watch"].Want)
		}
		item := reflect.New(list.Type().Elem())
		item.Elem().FieldByName("Name").SetString(e.Name)
		k.Into = item.Interface()
		k.Named = false
		d.Read(e.Value, k)
		list.Set(reflect.Append(list, item.Elem()))
	}
}
