package config

import (
	"cmp"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"github.com/watchtide/watchtide/internal/source/postgres"
	"github.com/watchtide/watchtide/stream/watch"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/internal/view"
	"github.com/watchtide/watchtide/stream"
)

// Collections are the collections of a source of type host.
var Collections = []string{host.Interfaces, host.Mounts, host.Processes}

// Watch is one entry of "watches": one named collection at one source.
type Watch struct {
	// Name is the key under "watches": 1 to 64 letters, digits, '.', '_' and '-'. An entry
	// whose name has parameters is a Template.
	Name string `yaml:"-"`
	// Source is the name of an entry of "sources"; empty: the watch is a view.
	Source string `yaml:"source"`
	// ViewOf is the name of another watch, of which this one is a part; empty: it has a
	// Source. A template may make the other watch.
	ViewOf string `yaml:"view_of,is=watch,of=view"`
	// Prime reports whether the watch is started at start, and /readyz waits for it
	// (true); else its first subscriber starts it.
	Prime bool `yaml:"prime"`
	// Required reports whether /readyz fails while the watch is out of sync for too
	// long (false).
	Required bool `yaml:"required"`
	// Linger is how long a watch that is not primed continues after its last
	// subscriber.
	Linger time.Duration `yaml:"linger"`
	// History is "history"; unset fields are as in "stream".
	History watch.Retention `yaml:"history"`
	// Memory is the most bytes that the watch may hold (as in "stream").
	Memory int64 `yaml:"memory,min=1MiB"`
	// SnapshotTimeout is how long a snapshot may take before the status of the watch
	// reports it.
	SnapshotTimeout time.Duration `yaml:"snapshot_timeout"`

	// Allow are the rules of access (none: with "auth", nobody can see the watch).
	Allow Allow `yaml:"allow"`

	// Compression is Uncompressed, or empty: as in "stream". That of a view is also
	// Uncompressed if that of its watch is.
	Compression string `yaml:"compression,is=no compression"`

	// Writable reports whether clients may write to the upstream (false). A watch of a store
	// always takes writes.
	Writable bool `yaml:"writable,of=etcd|nats|consul|kubernetes"`

	// Journal is JournalOn or JournalNone; empty: see Config.Journals.
	Journal string `yaml:"journal,is=journal,of=host|grpc|files|etcd|gateway|nats|consul|kubernetes|postgres"`

	// LabelsAt is the path of the object that holds a resource's labels, for views
	// (metadata.labels for kubernetes, metadata for consul, else labels). A view has that
	// of its watch.
	LabelsAt string `yaml:"labels_at"`
	// Selection is which part of its source, or of another watch, the watch has.
	Selection `yaml:",inline"`
}

// Selection is which part of its source, or of another watch, a watch has. Sources have different
// fields.
type Selection struct {
	// Collection is which part of the machine is watched: processes, interfaces or
	// mounts.
	Collection string `yaml:"collection,required,is=collection,of=host"`
	// Watch is the upstream's name for the watch (the watch's own name).
	Watch string `yaml:"watch,is=watch,of=gateway|grpc"`
	// Prefix narrows the watch to keys that begin with it; for etcd and Consul it is not
	// part of the keys.
	Prefix string `yaml:"prefix,is=prefix,of=consul|etcd|gateway|grpc|view"`
	// Filter, Labels and Fields narrow a view, or, at the other gateway, a watch of a
	// gateway source; see view.Params.
	Filter string   `yaml:"filter,is=filter,of=gateway|view"`
	Labels string   `yaml:"labels,is=labels,of=gateway|view"`
	Fields []string `yaml:"fields,of=gateway|view"`
	// By are the fields by whose values the resources of the other watch are counted, and Sum is the field
	// that is added; see view.Grouping. None: they are not counted.
	By  []string `yaml:"by,of=view"`
	Sum string   `yaml:"sum,of=view"`
	// Order makes a view a window: it has Limit resources after the first Offset, sorted by these paths; see
	// view.Params.
	Order  string `yaml:"order,is=order,of=view"`
	Limit  int    `yaml:"limit,of=view"`
	Offset int    `yaml:"offset,off,of=view"`
	// Grouping is how they are counted; nil: they are not.
	Grouping *view.Grouping `yaml:"-"`
	// Definition is what a view, or a watch of a gateway source, has of the other watch;
	// nil: all of it, or the watch has another source.
	Definition *view.Definition `yaml:"-"`
	// Bucket is the name of the bucket.
	Bucket string `yaml:"bucket,required,is=nats bucket,of=nats"`
	// Keys is a pattern of the keys that are watched.
	Keys string `yaml:"keys,is=nats keys,of=nats"`
	// Values is what the bytes of values are taken for.
	Values stream.Values `yaml:"values,is=values,of=consul|etcd|nats"`
	// Kubernetes specifies which objects are followed.
	Kubernetes kubernetes.Objects `yaml:",inline,of=kubernetes"`
	// Postgres specifies which table is followed.
	Postgres postgres.Table `yaml:",inline,of=postgres"`
	// Consul specifies which collection is followed.
	Consul consul.Resources `yaml:",inline,of=consul"`
}

func (w *Watch) check(d *decoder, at decode.Value) {
	if w.Journal == JournalOn && (decode.IsName(w.Name) || !w.Prime) {
		d.Errorf(d.Given[&w.Journal], "only watches that are primed at start are kept; leave out journal")
	}
	if w.Writable && w.Kubernetes.FieldSelector != "" {
		d.Errorf(d.Given[&w.Writable], "only the server knows which objects match a field_selector; want label_selector in its place, or leave out writable")
	}
	if w.Writable && (w.Consul.Type != "" || w.Consul.Collection != "" && w.Consul.Collection != consul.KV) {
		d.Errorf(d.Given[&w.Writable], "of consul, only the collection kv takes writes; leave out writable")
	}
	if w.Kubernetes.Impersonate && !w.Writable {
		d.Errorf(d.Given[&w.Kubernetes.Impersonate], "only writes are made in the name of who makes them; want writable: true as well, or leave out impersonate")
	}
	if w.Kubernetes.ImpersonateExtra && !w.Kubernetes.Impersonate {
		d.Errorf(d.Given[&w.Kubernetes.ImpersonateExtra], "nothing is sent of who makes a write; want impersonate: true as well, or leave out impersonate_extra")
	}
	if w.Kubernetes.Impersonate {
		d.impersonates = append(d.impersonates, impersonates{d.Given[&w.Kubernetes.Impersonate], w.Source})
	}
	if w.Writable && w.Consul.Entries {
		d.Errorf(d.Given[&w.Writable], "whole entries cannot be written, as Consul gives the session and the lock index itself; leave out writable, or entries")
	}
	if decode.IsName(w.Name) {
		w.checkStart(d)
		return
	}
	if w.Required && !w.Prime {
		d.Errorf(at, "required is for watches that are primed at start; leave out prime: false, or required")
	}
}

// read reads the keys of a watch according to the type of its source.
func (w *Watch) read(d *decoder, v decode.Value, _ decode.Key) {
	if decode.IsName(w.Name) {
		w.readTemplate(d, v)
		return
	}
	w.Prime = true
	w.readOptions(d, v)
}

// readOptions reads the keys of a watch, or of a template.
func (w *Watch) readOptions(d *decoder, v decode.Value) {
	if d.isView(v) {
		w.readView(d, v)
		return
	}
	kind := decode.Text{Want: "the name of a source (in quotation marks if it looks like a number)"}
	entries, source, ok := d.leading(v, "source", kind, "want the name of an entry of sources")
	if !ok {
		w.unknownKeys(d, v)
		return
	}
	sourceType, known := d.declared[source.Expanded]
	if sourceType == "" {
		w.unknownKeys(d, v)
	}
	switch {
	case !known && len(d.declared) == 0:
		d.Errorf(source.Value, "there is no source %q; the section sources has none", source.Written)
	case !known:
		d.CheckWord(source, "there is no source", slices.Collect(maps.Keys(d.declared)))
	case sourceType == "": // reported where it is declared; its type determines the keys
	default:
		w.readOf(d, v, entries, source.Written, sourceType)
	}
}

// unknownKeys reports the keys that no watch has. The source of this one, which would say
// which keys it has, is not known, and that has been reported.
func (w *Watch) unknownKeys(d *decoder, v decode.Value) {
	errors := len(d.Errs)
	entries, _ := d.Entries(v)
	d.Errs = d.Errs[:errors] // they were reported when the source was looked for
	var own templateKeys
	var names []string
	for _, k := range append(d.KeysOf(w), d.KeysOf(&own)...) {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, e := range entries {
		isSource := suggest.Nearest(e.Name, []string{"source"}) != ""
		if !isSource && !slices.Contains(names, e.Name) {
			d.UnknownKey(e, v.Path, names)
		}
	}
}

// readOf reads the keys of a watch of a source of a type.
func (w *Watch) readOf(d *decoder, v decode.Value, entries []decode.Entry, source string, of SourceType) {
	var keys []decode.Key
	owners := map[string]string{} // of the other keys
	narrows := map[string]bool{}  // whether a view has the key
	for _, k := range d.KeysOf(w) {
		if k.Of == nil || slices.Contains(k.Of, string(of)) {
			keys = append(keys, k)
			delete(owners, k.Name)
		} else if !slices.ContainsFunc(keys, func(own decode.Key) bool { return own.Name == k.Name }) {
			of := slices.DeleteFunc(slices.Clone(k.Of), func(of string) bool { return of == string(View) })
			if others := owners[k.Name]; others != "" {
				of = append(of, others)
			}
			owners[k.Name] = strings.Join(of, " or ")
			narrows[k.Name] = slices.Contains(k.Of, string(View))
		}
	}
	entries = slices.DeleteFunc(entries, func(given decode.Entry) bool {
		owner, misplaced := owners[given.Name]
		switch {
		case misplaced && owner == "":
			d.Errorf(decode.Value{Node: given.Key, Path: v.Path}, "%s is for views: use view_of in a watch of its own", given.Name)
		case misplaced && narrows[given.Name]:
			d.Errorf(decode.Value{Node: given.Key, Path: v.Path}, "%s is for watches of %s sources; %q is of type %s: use view_of in a watch of its own",
				given.Name, owner, source, of)
		case misplaced:
			d.Errorf(decode.Value{Node: given.Key, Path: v.Path}, "%s is for watches of %s sources; %q is of type %s", given.Name, owner, source, of)
		}
		return misplaced
	})
	d.fillWatch(w, v, entries, keys)
	if (of == GRPCs || of == Gateway) && w.Watch == "" {
		w.Watch = w.Name
	}
	if of == Consul {
		d.checkConsul(w, v, source)
	}
	d.checkLabelsAt(w, d.Given[&w.LabelsAt])
	if w.LabelsAt == "" {
		w.LabelsAt = labelsAtOf(w, of)
	}
	d.watches[w.Name] = declaredWatch{name: w.Name, source: w.Source, labelsAt: w.LabelsAt, plain: w.Compression != ""}
	if of == Gateway {
		w.definitionReader(d, v)("") // the other gateway knows where labels are
	}
}

// checkConsul reports options that the collection of a watch does not have, and what its source
// does not have for it.
func (d *decoder) checkConsul(w *Watch, v decode.Value, source string) {
	c, right := d.consuls[source]
	if !right {
		return
	}
	c.Resources, c.Prefix, c.Values = w.Consul, w.Prefix, w.Values
	option, problem := c.CheckCollection()
	if problem == "" {
		return
	}
	given := map[string]any{
		"resource_type": &w.Consul.Type, "name_prefix": &w.Consul.NamePrefix, "service": &w.Consul.Service, "entries": &w.Consul.Entries,
		"datacenter": &w.Consul.Datacenter, "filter_expression": &w.Consul.FilterExpression,
		"prefix": &w.Prefix, "values": &w.Values,
	}
	if into := given[option]; into != nil && d.IsGiven(into) {
		v = d.Given[into]
	} else {
		v = v.AtKey()
	}
	d.Errorf(v, "%s", problem)
}

// fillWatch reads the entries of a watch, or of a template, in the order of keys.
func (d *decoder) fillWatch(w *Watch, v decode.Value, entries []decode.Entry, keys []decode.Key) {
	var own templateKeys
	d.Fill(w, v, entries, append(keys, d.KeysOf(&own)...))
	max, share, params := d.Given[&own.Max], d.Given[&own.MaxPerClient], d.Given[&own.Params]
	switch {
	case d.template == nil && max.Node != nil:
		d.Errorf(max.AtKey(), "max is for templates, whose names have parameters, such as orders-{region}")
	case d.template == nil && share.Node != nil:
		d.Errorf(share.AtKey(), "max_per_client is for templates, whose names have parameters, such as orders-{region}")
	case d.template == nil && params.Node != nil:
		d.Errorf(params.AtKey(), "params are those of the name, which has none; write them as in orders-{region}")
	case own.Max > maxTemplateWatches:
		d.Errorf(max, "want at most %d", maxTemplateWatches)
	case own.MaxPerClient > cmp.Or(own.Max, defaultTemplateWatches):
		d.Errorf(share, "want at most max, which is %d", cmp.Or(own.Max, defaultTemplateWatches))
	case d.template != nil:
		d.template.max, d.template.maxPerClient = own.Max, own.MaxPerClient
	}
}
