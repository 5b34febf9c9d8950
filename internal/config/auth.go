package config

import (
	"crypto/tls"
	"maps"
	"slices"

	"github.com/watchtide/watchtide/access/credential"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/suggest"
)

// Credentials returns the configuration of the authenticator.
func (c *Config) Credentials() credential.Config {
	out := c.Auth.Credentials()
	out.PublicURL, out.AllowedOrigins, out.TrustedProxies = c.HTTP.PublicURL, c.HTTP.AllowedOrigins, c.HTTP.TrustedProxies
	for _, listener := range []*tls.Config{c.HTTP.TLS, c.GRPC.TLS, c.Operations.TLS} {
		if listener != nil && listener.ClientCAs != nil {
			out.ClientCAs = append(out.ClientCAs, listener.ClientCAs)
		}
	}
	return out
}

// readAuth reads the section, or the word none.
func (d *decoder) readAuth(v decode.Value, into *Auth) {
	v, ok := d.Resolve(v)
	if !ok {
		return
	}
	if decode.KindOf(v.Node) == "a mapping" {
		into.Given = true
		d.Section(v, into)
		return
	}
	const want = "none, which lets everybody do everything, or a section with credentials"
	_, into.None = d.TextOf(v, decode.Text{Want: want, Valid: func(s string) bool { return s == NoAuth }})
}

// credentials reports mistakes between "auth" and other sections.
func (d *decoder) credentials(c *Config) {
	asks := func(c *tls.Config) bool { return c != nil && c.ClientCAs != nil }
	if c.Auth.Certificates.Subject != "" && !asks(c.HTTP.TLS) && !asks(c.GRPC.TLS) {
		d.Errorf(d.Given[&c.Auth.Certificates].AtKey(), "no listener asks for certificates: want client_ca_file in http.tls or grpc.tls")
	}
	for _, at := range d.impersonates {
		switch of := c.Auth.Kubernetes.Source; {
		case !c.Auth.Given:
			d.Errorf(at.Value, "without credentials nobody has a name to write in; want auth with credentials, or leave out impersonate")
		case of != "" && of != at.source:
			d.Errorf(at.Value, "users of the source %q of auth.kubernetes are others in the cluster of %q; want a watch of %q, or leave out impersonate", of, at.source, of)
		}
	}
	if c.Auth.Login.Issuer != "" && c.HTTP.PublicURL == "" {
		d.Errorf(d.Given[&c.Auth.Login].AtKey(), "the provider needs an address to send browsers back to: want http.public_url")
	}
	d.cluster(c)
	if watch := c.Auth.Revoked.Watch; watch != "" && !slices.Contains(d.named, watch) {
		at, _ := d.Text(d.Given[&c.Auth.Revoked.Watch], wantWatch, nil)
		d.Errorf(at.Value, "there is no watch %q; %s", at.Written, suggest.Sentence(watch, d.named))
		return
	}
	d.revocationsLast(c)
}

// cluster reports a source of auth.kubernetes that is none, or of another type.
func (d *decoder) cluster(c *Config) {
	source := c.Auth.Kubernetes.Source
	if source == "" {
		return
	}
	at, _ := d.Text(d.Given[&c.Auth.Kubernetes.Source], wantText, nil)
	switch of, declared := d.declared[source]; {
	case !declared:
		d.Errorf(at.Value, "there is no source %q; %s", at.Written, suggest.Sentence(source, slices.Collect(maps.Keys(d.declared))))
	case of != Kubernetes && of != "":
		d.Errorf(at.Value, "the source %q is of type %s; want one of type kubernetes, whose API server knows the users", at.Written, of)
	}
}

// forgetful are the types of sources whose resources end with the process, and are not those of
// other replicas. The value is why.
var forgetful = map[SourceType]string{
	Store: "is in the memory of this process: after a restart, and at other replicas, nobody would be revoked",
	Host:  "is about this machine, and has no revocations",
}

// revocationsLast reports a watch of revocations, or a view, whose source forgets them.
func (d *decoder) revocationsLast(c *Config) {
	w, known := d.lineage.find(c.Auth.Revoked.Watch)
	if !known {
		return // it has a mistake itself
	}
	path, ok := d.lineage.follow(w)
	if !ok {
		return
	}
	source := path[len(path)-1].source
	why, forgets := forgetful[d.declared[source]]
	if !forgets {
		return
	}
	if d.declared[source] == Store && storePath(c, source) != "" {
		if len(c.Operations.Replicas) == 0 {
			return
		}
		why = "is a file of this machine, and operations.replicas names others, where nobody would be revoked"
	}
	at, _ := d.Text(d.Given[&c.Auth.Revoked.Watch], wantWatch, nil)
	d.Errorf(at.Value, "the source %q of this watch %s; want a source that lasts and that all replicas have, such as etcd, nats, consul, kubernetes, grpc, files or gateway; for one replica, a store with a path", source, why)
}

// storePath returns the path of a store; "": it is in memory.
func storePath(c *Config, source string) string {
	for _, s := range c.Sources {
		if s.Name == source {
			return s.Store.Path
		}
	}
	return ""
}
