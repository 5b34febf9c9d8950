package config

import (
	"net"
	"net/url"
	"strconv"
)

// config reads the whole document. Sources come before watches, wherever they
// stand in the file, since a watch is read by the type of its source.
func (d *decoder) config(c *Config, v value) {
	var sources, watches value
	d.object(v, map[string]field{
		"http":    d.http(&c.HTTP),
		"grpc":    d.grpc(&c.GRPC),
		"stream":  d.stream(&c.Stream),
		"metrics": d.metrics(&c.Metrics),
		"sources": func(v value) { sources = v },
		"watches": func(v value) { watches = v },
	})
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
	return d.strThat(`host:port, such as "127.0.0.1:8080", or ":8080" for every interface`, ValidListen, into)
}

// ValidListen says whether address is host:port with a port number.
func ValidListen(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func validOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" &&
		u.Scheme+"://"+u.Host == origin
}
