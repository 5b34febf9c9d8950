package config

import (
	"cmp"
	"slices"

	"github.com/watchtide/watchtide/gateway"
	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// check reports listeners on the same address, and completes the watches.
func (c *Config) check(d *decoder, _ decode.Value) {
	web, grpc, operations := c.HTTP.Listen, c.GRPC.Listen, c.Operations.Listen
	if decode.SameListener(web, grpc) {
		d.Errorf(cmp.Or(d.Given[&c.GRPC], d.Given[&c.HTTP]), "http and grpc listen on the same address; want a port for each")
	}
	if operations != DefaultOperations && (decode.SameListener(web, operations) || decode.SameListener(grpc, operations)) {
		d.Errorf(d.Given[&c.Operations], "operations listens on the same address as http or grpc; want a port for each")
	}
	for i := range c.Watches {
		w := &c.Watches[i]
		w.History = historyOr(w.History, c.Stream.History)
		w.Memory = cmp.Or(w.Memory, c.Stream.Memory.Watch)
	}
}

// check completes a section that is there.
func (g *GRPC) check(*decoder, decode.Value) { g.Listen = cmp.Or(g.Listen, DefaultGRPC) }

// check reports access to replicas that would not be used.
func (o *Operations) check(d *decoder, _ decode.Value) {
	if o.ReplicasToken != "" && len(o.Replicas) == 0 {
		d.Errorf(d.Given[&o.ReplicasToken].AtKey(), "there are no replicas to send it to; want replicas, a list of addresses")
	}
	if o.ReplicasTLS != nil && !slices.ContainsFunc(o.Replicas, gateway.SecureReplica) {
		d.Errorf(d.Given[&o.ReplicasTLS].AtKey(), "none of replicas begins with https; want such an address, or no replicas_tls")
	}
}

// ValidListen reports whether address is host:port with a port number. The host may be
// missing, and is not looked up here.
func ValidListen(address string) bool { return decode.ValidListen(address) }
