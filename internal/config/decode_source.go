package config

import (
	"slices"

	"github.com/watchtide/watchtide/internal/suggest"
	"github.com/watchtide/watchtide/stream"
	grpcsource "github.com/watchtide/watchtide/stream/source/grpc"
	"github.com/watchtide/watchtide/stream/source/host"
)

// sourceFields returns, for each source type of this build, the readers for
// its own keys.
func (d *decoder) sourceFields(s *Source) map[SourceType]map[string]field {
	return map[SourceType]map[string]field{
		Store: {
			"max_value_bytes": d.size(&s.Store.MaxValueBytes),
			"max_bytes":       d.size(&s.Store.MaxBytes),
		},
		Host: {
			"interval": d.durationAtLeast(host.MinInterval, &s.Host.Interval),
		},
		GRPCs: {
			"address":           d.strThat(grpcsource.WantAddress, grpcsource.ValidAddress, &s.GRPC.Address),
			"tls":               d.clientTLS(&s.GRPC.TLS),
			"metadata":          d.metadata(&s.GRPC.Metadata),
			"metadata_files":    d.metadataFiles(&s.GRPC.Metadata),
			"keepalive":         d.durationOf(tag{min: grpcsource.MinKeepalive.String(), least: int64(grpcsource.MinKeepalive), off: true}, &s.GRPC.Keepalive),
			"stall_after":       d.duration(&s.GRPC.StallAfter),
			"max_message_bytes": d.messageSize(&s.GRPC.MaxMessageBytes),
		},
		Files:   d.files(&s.Files),
		Etcd:    d.etcd(&s.Etcd),
		Gateway: d.gateway(&s.Gateway),
		NATS:    d.nats(&s.NATS),
		Consul:  d.consul(&s.Consul),

		Kubernetes: d.kubernetes(&s.Kubernetes),
	}
}

// required are the mandatory keys of each source type.
var required = map[SourceType]string{GRPCs: "address", Files: "dir", Etcd: "endpoints", Gateway: "url", NATS: "url", Consul: "address"}

// sources reads the section, and records the type of every declared source.
func (d *decoder) sources(v value, into *[]Source) {
	entries, _ := d.entries(v)
	for _, e := range entries {
		s := Source{Name: e.name}
		if d.name(e) && d.source(&s, e) {
			*into = append(*into, s)
		}
		d.declared[e.name] = s.Type
	}
}

// name reports a key that cannot be the name of a source or a watch.
func (d *decoder) name(e entry) bool {
	if stream.CheckWatchName(e.name) == nil {
		return true
	}
	d.errorf(value{node: e.key}, "%q: want a name of 1 to 64 letters, digits, '.', '_' or '-'", e.name)
	return false
}

// source reads one source, and reports whether it has a type of this build.
// The keys of other types are not checked.
func (d *decoder) source(s *Source, e entry) bool {
	entries, typ, ok := d.leading(e, "type", suggest.Sentence("", d.sourceTypes(s)))
	if !ok {
		return false
	}
	given, ok := d.text(typ.value, "the name of a source type", nil)
	if !ok {
		return false
	}
	fields, built := d.sourceFields(s)[SourceType(given.expanded)]
	if !built {
		d.unknownType(s, given)
		return false
	}
	s.Type = SourceType(given.expanded)
	fields["type"] = func(value) {}
	d.object(e.value, fields)
	if key := required[s.Type]; key != "" && d.lacks(entries, key) {
		d.errorf(value{node: e.key, path: e.path}, "%s is missing, which a source of type %s must have", key, s.Type)
	}
	if s.Type == Etcd && d.lacks(entries, "username") != d.lacks(entries, "password_file") {
		d.errorf(value{node: e.key, path: e.path}, "want both username and password_file, or neither")
	}
	if s.Type == Gateway {
		d.checkGateway(&s.Gateway, value{node: e.key, path: e.path})
	}
	if s.Type == NATS {
		d.checkNATS(&s.NATS, value{node: e.key, path: e.path})
	}
	if s.Type == Kubernetes {
		d.checkKubernetes(&s.Kubernetes, value{node: e.key, path: e.path})
	}
	return true
}

// leading returns the entries of a source or a watch, and the one whose key
// determines the meaning of the others. false: an error was added.
func (d *decoder) leading(e entry, key, advice string) (entries []entry, lead entry, ok bool) {
	errors := len(d.errs)
	entries, _ = d.entries(e.value)
	at := slices.IndexFunc(entries, func(e entry) bool { return e.name == key })
	if at >= 0 {
		return entries, entries[at], true
	}
	if other, found := misspelled(key, entries); found {
		d.unknownKey(other, e.path, []string{key})
	} else if len(d.errs) == errors {
		d.errorf(value{node: e.key, path: e.path}, "%s is missing; %s", key, advice)
	}
	return entries, lead, false
}

// lacks reports whether a key is missing, and not only misspelled, which is
// reported already.
func (d *decoder) lacks(entries []entry, key string) bool {
	_, found := misspelled(key, entries)
	return !found
}

func (d *decoder) unknownType(s *Source, given scalar) {
	d.errorf(given.value, "this build has no source type %q; %s", given.written, suggest.Sentence(given.written, d.sourceTypes(s)))
}

func (d *decoder) sourceTypes(s *Source) []string {
	var types []string
	for t := range d.sourceFields(s) {
		types = append(types, string(t))
	}
	return types
}

// messageSize reads a size that gRPC accepts.
func (d *decoder) messageSize(into *int) field {
	return func(v value) {
		var size int64
		d.size(&size)(v)
		if size > 1<<31-1 {
			d.errorf(v, "want less than 2GiB, which is the most that gRPC takes")
			return
		}
		*into = int(size)
	}
}
