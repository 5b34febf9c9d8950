package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream"
	"github.com/watchtide/watchtide/stream/source/consul"
	"github.com/watchtide/watchtide/stream/source/host"
	"github.com/watchtide/watchtide/stream/source/nats"
)

// Collections are what a source of type host can watch.
var Collections = []string{host.Interfaces, host.Mounts, host.Processes}

// watchFields returns the readers for the keys that every watch may have.
func (d *decoder) watchFields(w *Watch) map[string]field {
	return map[string]field{
		"source":           d.str(&w.Source),
		"prime":            d.boolean(&w.Prime),
		"required":         d.boolean(&w.Required),
		"linger":           d.duration(&w.Linger),
		"history":          d.history(&w.History),
		"memory":           d.ceiling(&w.Memory),
		"snapshot_timeout": d.duration(&w.SnapshotTimeout),
	}
}

// ownFields returns, for each source type, the readers for the keys that only
// its watches may have.
func (d *decoder) ownFields(w *Watch) map[SourceType]map[string]field {
	named := map[string]field{
		"watch": d.strThat("a name of 1 to 64 letters, digits, '.', '_' or '-'",
			func(s string) bool { return stream.CheckWatchName(s) == nil }, &w.Watch),
		"prefix": d.str(&w.Prefix),
	}
	return map[SourceType]map[string]field{
		Host:  {"collection": d.collection(&w.Collection)},
		GRPCs: named, Gateway: named,
		Etcd: {"prefix": d.str(&w.Prefix)},
		NATS: d.natsWatch(w),

		Consul:     d.consulWatch(&w.Consul),
		Kubernetes: d.kubernetesWatch(&w.Kubernetes),
	}
}

func (d *decoder) watches(v value, into *[]Watch) {
	entries, _ := d.entries(v)
	for _, e := range entries {
		w := Watch{Name: e.name, Prime: true}
		d.name(e)
		d.watch(&w, e)
		*into = append(*into, w)
	}
}

// watch reads one watch, according to the type of its source.
func (d *decoder) watch(w *Watch, e entry) {
	entries, source, ok := d.leading(e, "source", "want the name of an entry of sources")
	if !ok {
		return
	}
	name, ok := d.text(source.value, "the name of a source (in quotation marks if it looks like a number)", nil)
	if !ok {
		return
	}
	sourceType, known := d.declared[name.expanded]
	switch {
	case !known && len(d.declared) == 0:
		d.errorf(name.value, "there is no source %q; the section sources has none", name.written)
	case !known:
		d.errorf(name.value, "there is no source %q; %s", name.written, suggest.Sentence(name.written, names(d.declared)))
	case sourceType == "": // reported where it is declared; its type determines the keys
	default:
		d.watchOf(w, e, sourceType, entries)
	}
}

func (d *decoder) watchOf(w *Watch, e entry, source SourceType, entries []entry) {
	fields, own := d.watchFields(w), d.ownFields(w)
	for _, given := range entries {
		if read, ok := own[source][given.name]; ok {
			fields[given.name] = read
			continue
		}
		if of := ownersOf(own, given.name); of != "" {
			d.errorf(value{node: given.key, path: e.path}, "%s is for watches of %s sources; %s is of type %s",
				given.name, of, w.sourceIn(entries), source)
			fields[given.name] = func(value) {}
		}
	}
	for name, read := range own[source] {
		fields[name] = read
	}
	d.object(e.value, fields)
	if w.Required && !w.Prime {
		d.errorf(value{node: e.key, path: e.path}, "required is for watches that are primed at start; leave out prime: false, or required")
	}
	if source == Host && d.lacks(entries, "collection") {
		d.errorf(value{node: e.key, path: e.path}, "collection is missing; want %s", oneOf(Collections))
	}
	if source == Kubernetes {
		d.checkKubernetesWatch(entries, value{node: e.key, path: e.path})
	}
	if source == Consul && d.lacks(entries, "resource_type") {
		d.errorf(value{node: e.key, path: e.path}, "resource_type is missing; want %s", consul.WantType)
	}
	if source == NATS && d.lacks(entries, "bucket") {
		d.errorf(value{node: e.key, path: e.path}, "bucket is missing; want %s", nats.WantBucket)
	}
	if (source == GRPCs || source == Gateway) && w.Watch == "" {
		w.Watch = w.Name
	}
}

// sourceIn returns the name of the source as written.
func (w *Watch) sourceIn(entries []entry) string {
	for _, e := range entries {
		if e.name == "source" {
			return fmt.Sprintf("%q", e.node.GetToken().Value)
		}
	}
	return "its source"
}

// ownersOf returns the source types whose watches may have the key; "" if there
// are none.
func ownersOf(own map[SourceType]map[string]field, key string) string {
	var owners []string
	for t, fields := range own {
		if _, ok := fields[key]; ok {
			owners = append(owners, string(t))
		}
	}
	slices.Sort(owners)
	return strings.Join(owners, " or ")
}

func (d *decoder) collection(into *string) field {
	return func(v value) {
		s, ok := d.text(v, oneOf(Collections), nil)
		if !ok {
			return
		}
		if !slices.Contains(Collections, s.expanded) {
			d.errorf(s.value, "this machine has no collection %q; %s", s.written, suggest.Sentence(s.written, Collections))
			return
		}
		*into = s.expanded
	}
}

func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
