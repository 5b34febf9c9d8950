package config

import (
	"cmp"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
	"github.com/watchtide/watchtide/internal/config/internal/word"
)

// check reports listeners on the same address, and completes the watches.
func (c *Config) check(d *decoder, _ decode.Value) {
	web, grpc, operations := c.HTTP.Listen, c.GRPC.Listen, c.Operations.Listen
	if word.SameListener(web, grpc) {
		d.Errorf(cmp.Or(d.Given[&c.GRPC], d.Given[&c.HTTP]), "http and grpc listen on the same address; want a port for each")
	}
	if operations != DefaultOperations && (word.SameListener(web, operations) || word.SameListener(grpc, operations)) {
		d.Errorf(d.Given[&c.Operations], "operations listens on the same address as http or grpc; want a port for each")
	}
	for i := range c.Watches {
		w := &c.Watches[i]
		w.History = w.History.or(c.Stream.History)
		w.Memory = cmp.Or(w.Memory, c.Stream.Memory.Watch)
	}
}

// check completes a section that is there.
func (g *GRPC) check(*decoder, decode.Value) { g.Listen = cmp.Or(g.Listen, DefaultGRPC) }

// ValidListen reports whether address is host:port with a port number. The host may be
// missing, and is not looked up here.
func ValidListen(address string) bool { return word.ValidListen(address) }
