package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/watchtide/watchtide/gateway"
)

// config reads the whole document. Sources come before watches, wherever they
// are in the file, since a watch is read according to the type of its source.
func (d *decoder) config(c *Config, v value) {
	var sources, watches, listener, operations value
	d.object(v, map[string]field{
		"http":       func(v value) { listener = v; d.http(&c.HTTP)(v) },
		"grpc":       func(v value) { listener = v; d.grpc(&c.GRPC)(v) },
		"operations": func(v value) { operations = v; d.operations(&c.Operations)(v) },
		"auth": d.strThat("none, which is all that there is yet: whoever reaches a listener may do everything",
			func(s string) bool { return s == AuthNone }, &c.Auth),
		"stream":  d.stream(&c.Stream),
		"metrics": d.metrics(&c.Metrics),
		"sources": func(v value) { sources = v },
		"watches": func(v value) { watches = v },
	})
	if sameListener(c.HTTP.Listen, c.GRPC.Listen) {
		d.errorf(listener, "http and grpc listen on the same address; want a port for each")
	}
	if ops := c.Operations.Listen; ops != DefaultOperations && (sameListener(c.HTTP.Listen, ops) || sameListener(c.GRPC.Listen, ops)) {
		d.errorf(operations, "operations listens on the same address as http or grpc; want a port for each")
	}
	declared := d.sources(c, sources)
	d.watches(c, watches, declared)
}

func (d *decoder) http(h *HTTP) field {
	return func(v value) {
		d.object(v, map[string]field{
			"listen": d.listen(&h.Listen),
			"tls":    d.serverTLS(&h.TLS),
			"hosts": d.list(`a host name without a port, such as app.example.com, "*.example.com", or "*" for every name`,
				func(name string) bool { return gateway.CheckHost(name) == nil }, &h.Hosts),
			"allowed_origins": d.list("an origin as a browser sends it: https://app.example.com",
				validOrigin, &h.AllowedOrigins),
			"trusted_proxies": d.networks(&h.TrustedProxies),
			"forwarded_header": d.strThat(oneOf(ForwardedHeaders),
				func(name string) bool { return slices.Contains(ForwardedHeaders, name) }, &h.ForwardedHeader),
			"max_connections": d.count(&h.MaxConnections),
			"body_budget":     d.size(&h.BodyBudget),
			"answer_budget":   d.size(&h.AnswerBudget),
		})
	}
}

func (d *decoder) grpc(g *GRPC) field {
	return func(v value) {
		d.object(v, map[string]field{
			"listen": d.listen(&g.Listen),
			"tls":    d.serverTLS(&g.TLS),
		})
	}
}

func (d *decoder) operations(o *Operations) field {
	return func(v value) {
		d.object(v, map[string]field{
			"listen": d.listenThat("; off for none", func(s string) bool { return s == OperationsOff || ValidListen(s) }, &o.Listen),
			"tls":    d.serverTLS(&o.TLS),
		})
	}
}

func (d *decoder) stream(s *Stream) field {
	return func(v value) {
		d.object(v, map[string]field{
			"heartbeat":                  d.pulse(&s.Heartbeat),
			"write_timeout":              d.pulse(&s.WriteTimeout),
			"min_rate":                   d.sizeOrOff(&s.MinRate),
			"retry":                      d.pulse(&s.Retry),
			"max_age":                    d.durationOrOff(&s.MaxAge),
			"drain_delay":                d.durationOrOff(&s.DrainDelay),
			"drain":                      d.durationOrOff(&s.Drain),
			"ahead_wait":                 d.duration(&s.AheadWait),
			"prime_wait":                 d.duration(&s.PrimeWait),
			"stale_allowed":              d.duration(&s.StaleAllowed),
			"max_subscribers":            d.count(&s.MaxSubscribers),
			"max_subscribers_per_client": d.count(&s.MaxSubscribersPerClient),
			"max_subscribers_per_watch":  d.count(&s.MaxSubscribersPerWatch),
			"snapshot_budget":            d.size(&s.SnapshotBudget),
			"pump":                       d.strThat(oneOf(Pumps), func(p string) bool { return slices.Contains(Pumps, p) }, &s.Pump),
			"compression":                d.strThat(oneOf(Compressions), func(p string) bool { return slices.Contains(Compressions, p) }, &s.Compression),
			"compression_cache":          d.size(&s.CompressionCache),
			"memory":                     d.memory(&s.Memory),
			"history":                    d.history(&s.History),
		})
	}
}

func (d *decoder) memory(m *Memory) field {
	return func(v value) {
		d.object(v, map[string]field{"watch": d.ceiling(&m.Watch), "total": d.ceiling(&m.Total)})
	}
}

func (d *decoder) history(h *History) field {
	return func(v value) {
		d.object(v, map[string]field{
			"max_age":     d.duration(&h.MaxAge),
			"max_deletes": d.count(&h.MaxDeletes),
			"max_bytes":   d.size(&h.MaxBytes),
		})
	}
}

func (d *decoder) metrics(m *Metrics) field {
	return func(v value) {
		d.object(v, map[string]field{"enabled": d.boolean(&m.Enabled)})
	}
}

func (d *decoder) listen(into *string) field {
	return d.listenThat("", ValidListen, into)
}

// listenThat reads an address to listen on, and records its place.
func (d *decoder) listenThat(more string, ok func(string) bool, into *string) field {
	want := `host:port, such as "127.0.0.1:8080", or ":8080" for every interface, with a port up to 65535` + more
	return func(v value) {
		s, read := d.text(v, want, nil)
		if !read {
			return
		}
		if !ok(s.expanded) {
			d.wrong(s, want)
			return
		}
		*into, d.listens[into] = s.expanded, s
	}
}

// sameListener reports whether two addresses cannot both be listened on: they
// are equal, or one is every interface at the same port.
func sameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || includes(hostA, hostB) || includes(hostB, hostA)
}

// includes reports whether one host is every interface, including the other host's.
func includes(every, other string) bool {
	return every == "" || every == "::" || every == "0.0.0.0" && !strings.Contains(other, ":")
}

// ValidListen reports whether address is host:port with a port number. The host
// may be missing, and is not looked up here.
func ValidListen(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.ContainsFunc(host, notInHost) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// notInHost reports whether the rune occurs neither in a name nor in an
// IP address, with or without a zone.
func notInHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:%", r)
}

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		u.Scheme+"://"+u.Host == origin
}
