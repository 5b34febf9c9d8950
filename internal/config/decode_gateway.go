package config

import (
	"net/http"
	"path/filepath"
	"strings"

	gatewaysource "github.com/watchtide/watchtide/stream/source/gateway"
)

// gateway returns the readers for the keys of a source of type gateway.
func (d *decoder) gateway(g *GatewaySource) map[string]field {
	return map[string]field{
		"url":             d.strThat(gatewaysource.WantURL, gatewaysource.ValidURL, &g.URL),
		"tls":             d.clientTLS(&g.TLS),
		"token_file":      d.tokenFile(&g.TokenFile),
		"headers":         d.headers(&g.Headers),
		"header_files":    d.headerFiles(&g.Headers),
		"stall_after":     d.duration(&g.StallAfter),
		"max_event_bytes": d.eventSize(&g.MaxEventBytes),
	}
}

// checkGateway reports keys that contradict each other.
func (d *decoder) checkGateway(g *GatewaySource, at value) {
	if g.TLS != nil && strings.HasPrefix(g.URL, "http:") {
		d.errorf(at, "tls is given for a url that begins with http: want https, or no tls")
	}
	if _, given := g.Headers["Authorization"]; given && g.TokenFile != "" {
		d.errorf(at, "want token_file, or a header Authorization, not both")
	}
}

// tokenFile reads the name of a file that must hold a token now, and may hold
// another one later.
func (d *decoder) tokenFile(into *string) field {
	return func(v value) {
		var now Secret
		d.secretFile(&now)(v)
		name, ok := d.text(v, "the name of a file", nil)
		if !ok {
			return
		}
		if *into = name.expanded; !filepath.IsAbs(*into) {
			*into = filepath.Join(d.dir, *into)
		}
	}
}

// headers reads names and values that are not secret.
func (d *decoder) headers(into *Metadata) field {
	return func(v value) {
		entries, _ := d.entries(v)
		for _, e := range entries {
			if namesCredential(e.name) {
				d.errorf(value{node: e.key, path: e.path},
					"credentials do not stand in the configuration; put the value into a file and name the file in header_files")
				continue
			}
			var text string
			d.strThat("printable ASCII", validMetadata, &text)(e.value)
			d.addHeader(into, e, text)
		}
	}
}

// headerFiles reads names, and files that hold the values.
func (d *decoder) headerFiles(into *Metadata) field {
	return func(v value) {
		entries, _ := d.entries(v)
		for _, e := range entries {
			var text Secret
			d.secretFile(&text)(e.value)
			if text != "" {
				d.addHeader(into, e, string(text))
			}
		}
	}
}

func (d *decoder) addHeader(into *Metadata, e entry, text string) {
	at := value{node: e.key, path: e.path}
	name := http.CanonicalHeaderKey(e.name)
	if !gatewaysource.ValidHeaderName(name) {
		d.errorf(at, "want %s", gatewaysource.WantHeaderName)
		return
	}
	if _, twice := (*into)[name]; twice {
		d.errorf(at, "%q stands in headers or header_files already", name)
		return
	}
	if *into == nil {
		*into = Metadata{}
	}
	(*into)[name] = text
}

// eventSize reads a size that fits into memory.
func (d *decoder) eventSize(into *int) field {
	return func(v value) {
		var size int64
		d.size(&size)(v)
		if size > 1<<31-1 {
			d.errorf(v, "want less than 2GiB")
			return
		}
		*into = int(size)
	}
}
