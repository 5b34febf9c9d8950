package config

import (
	"github.com/watchtide/watchtide/access"
	"github.com/watchtide/watchtide/internal/source/adapter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/source/consul"
	"github.com/watchtide/watchtide/internal/source/etcd"
	"github.com/watchtide/watchtide/internal/source/files"
	grpcsource "github.com/watchtide/watchtide/internal/source/grpc"
	"github.com/watchtide/watchtide/internal/source/host"
	"github.com/watchtide/watchtide/internal/source/kubernetes"
	"github.com/watchtide/watchtide/internal/source/nats"
	"github.com/watchtide/watchtide/internal/source/postgres"
)

func TestParseTag(t *testing.T) {
	type section struct {
		Plain   string           `yaml:"plain"`
		Pulse   time.Duration    `yaml:"pulse,min=1ms"`
		Ceiling int64            `yaml:"ceiling,min=1MiB,off"`
		Pump    string           `yaml:"pump,is=pump"`
		NoPump  bool             `yaml:"pumps,not"`
		None    string           `yaml:"-"`
		Address string           `yaml:"address,required,of=etcd|nats"`
		Bytes   int              `yaml:"bytes,bytes" why:"which is a lot"`
		Headers adapter.Metadata `yaml:"headers,files=header_files,names=header"`
	}
	for i, want := range []decode.Tag{
		{Name: "plain"},
		{Name: "pulse", Min: "1ms", Least: int64(time.Millisecond)},
		{Name: "ceiling", Min: "1MiB", Least: 1 << 20, Off: true},
		{Name: "pump", Is: "pump"},
		{Name: "pumps", Not: true},
		{Name: "-"},
		{Name: "address", Required: true, Of: []string{"etcd", "nats"}},
		{Name: "bytes", Bytes: true, Why: ", which is a lot"},
		{Name: "headers", Files: "header_files", Names: "header"},
	} {
		got, err := decode.ParseTag(reflect.TypeFor[section]().Field(i), kinds.Has)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestMalformedTags(t *testing.T) {
	type section struct {
		None     string
		Unknown  string           `yaml:"a,mni=1s"`
		Duration time.Duration    `yaml:"b,min=1MiB"`
		Size     int64            `yaml:"c,min=1s"`
		Kind     string           `yaml:"d,is=adress"`
		Names    adapter.Metadata `yaml:"e,names=heeders"`
	}
	for i, want := range []string{
		"None has no yaml tag", `option "mni=1s": no such option`, `option "min=1MiB": time: `,
		`option "min=1s": neither a duration nor a number of bytes`, `option "is=adress": no such kind`, `option "names=heeders": no such kind`,
	} {
		if _, err := decode.ParseTag(reflect.TypeFor[section]().Field(i), kinds.Has); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestTags reads the tags of every section, and finds kinds of text that no tag
// names.
func TestTags(t *testing.T) {
	used := map[string]bool{"": true, "network": true, "printable": true}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		switch {
		case typ.Kind() == reflect.Slice:
			walk(typ.Elem())
		case typ == reflect.TypeFor[namedFile]():
		case typ.Kind() == reflect.Struct && strings.HasPrefix(typ.PkgPath(), "github.com/watchtide/watchtide/") && typ != reflect.TypeFor[access.RoleValue](): // it has a syntax of its own
			for i := range typ.NumField() {
				if f := typ.Field(i); !f.IsExported() || f.Tag.Get("yaml") == "-" && !strings.HasPrefix(typ.PkgPath(), reflect.TypeFor[Config]().PkgPath()) {
					continue
				}
				parsed, err := decode.ParseTag(typ.Field(i), kinds.Has)
				if err != nil {
					t.Errorf("%s: %v", typ, err)
				}
				used[parsed.Is] = true
				for _, of := range parsed.Of {
					if SourceType(of) != View && new(Source).sections()[SourceType(of)] == nil {
						t.Errorf("%s.%s: there is no source type %q", typ, typ.Field(i).Name, of)
					}
				}
				walk(typ.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	walk(reflect.TypeFor[serverTLS]())
	walk(reflect.TypeFor[clientTLS]())
	for name := range texts {
		if !used[name] {
			t.Errorf("no tag names the kind of text %q", name)
		}
	}
}

// TestLimitsOfSources compares the limits in tags with those of the packages
// that read the values.
func TestLimitsOfSources(t *testing.T) {
	limits := map[string]int64{
		"consul.list_interval":      int64(consul.MinRelist),
		"consul.probe_interval":     int64(consul.MinProbe),
		"etcd.stall_after":          int64(etcd.MinStallAfter),
		"files.rescan":              int64(files.MinRescan),
		"grpc.keepalive":            int64(grpcsource.MinKeepalive),
		"host.interval":             int64(host.MinInterval),
		"kubernetes.stall_after":    int64(kubernetes.MinStallAfter),
		"nats.poll_interval":        int64(nats.MinPollInterval),
		"nats.stall_after":          int64(nats.MinStallAfter),
		"postgres.stall_after":      int64(postgres.MinStallAfter),
		"postgres.max_retained_wal": postgres.MinMaxRetainedWAL,
	}
	found := 0
	for of, section := range new(Source).sections() {
		for _, k := range newDecoder("f", fakeEnvironment()).KeysOf(section) {
			name := string(of) + "." + k.Name
			if want := limits[name]; want != k.Least {
				t.Errorf("the least %s is %d, want %d", name, k.Least, want)
			}
			if k.Least != 0 {
				found++
			}
		}
	}
	if found != len(limits) {
		t.Errorf("found %d limits, want %d", found, len(limits))
	}
}
