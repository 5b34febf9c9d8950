package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// config reads the whole document. Sources come before watches, wherever they
// stand in the file, since a watch is read by the type of its source.
func (d *decoder) config(c *Config, v value) {
	var sources, watches, listener value
	d.object(v, map[string]field{
		"http":    func(v value) { listener = v; d.http(&c.HTTP)(v) },
		"grpc":    func(v value) { listener = v; d.grpc(&c.GRPC)(v) },
		"stream":  d.stream(&c.Stream),
		"metrics": d.metrics(&c.Metrics),
		"sources": func(v value) { sources = v },
		"watches": func(v value) { watches = v },
	})
	if c.HTTP.Listen == c.GRPC.Listen && !strings.HasSuffix(c.GRPC.Listen, ":0") {
		d.errorf(listener, "http and grpc listen on the same address; want a port for each")
	}
	declared := d.sources(c, sources)
	d.watches(c, watches, declared)
}

func (d *decoder) http(h *HTTP) field {
	return func(v value) {
		d.object(v, map[string]field{
			"listen": d.listen(&h.Listen),
			"tls":    d.serverTLS(&h.TLS),
			"allowed_origins": d.list("an origin as a browser sends it: https://app.example.com",
				validOrigin, &h.AllowedOrigins),
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

func (d *decoder) stream(s *Stream) field {
	return func(v value) {
		d.object(v, map[string]field{
			"heartbeat":       d.duration(&s.Heartbeat),
			"write_timeout":   d.duration(&s.WriteTimeout),
			"retry":           d.duration(&s.Retry),
			"max_age":         d.durationOrOff(&s.MaxAge),
			"drain":           d.durationOrOff(&s.Drain),
			"ahead_wait":      d.duration(&s.AheadWait),
			"prime_wait":      d.duration(&s.PrimeWait),
			"stale_allowed":   d.duration(&s.StaleAllowed),
			"max_subscribers": d.count(&s.MaxSubscribers),
			"pump":            d.strThat(oneOf(Pumps), func(p string) bool { return slices.Contains(Pumps, p) }, &s.Pump),
			"history":         d.history(&s.History),
		})
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
	return d.strThat(`host:port, such as "127.0.0.1:8080", or ":8080" for every interface, with a port up to 65535`, ValidListen, into)
}

// ValidListen says whether address is host:port with a port number. The host may
// be missing, and is not looked up here.
func ValidListen(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.ContainsFunc(host, notInHost) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// notInHost says whether neither a name nor an IP address, with a zone or
// without, has the rune.
func notInHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:%", r)
}

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		u.Scheme+"://"+u.Host == origin
}
