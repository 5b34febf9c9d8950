package config

import (
	"cmp"
	"fmt"

	"github.com/watchtide/watchtide/internal/hosts"
)

// AuthNone is the value of "auth" that lets other machines reach the
// listeners although the gateway requires no credentials.
const AuthNone = "none"

// OperationsOff is the address that disables the operations listener.
const OperationsOff = "off"

// Flags are the values of the command line that override the file; empty: none.
type Flags struct {
	HTTP, GRPC, Operations string // addresses
	Auth                   string
}

// override replaces values of the file by those of the command line.
func (f Flags) override(c *Config) {
	c.HTTP.Listen = cmp.Or(f.HTTP, c.HTTP.Listen)
	c.GRPC.Listen = cmp.Or(f.GRPC, c.GRPC.Listen)
	c.Operations.Listen = cmp.Or(f.Operations, c.Operations.Listen)
	c.Auth = cmp.Or(f.Auth, c.Auth)
}

// exposure rejects listeners that other machines can reach, unless the
// configuration permits it explicitly.
func (d *decoder) exposure(c *Config) {
	if c.Auth == AuthNone {
		return
	}
	const watches = "read every watch, and write to those that can be written"
	for _, l := range []struct {
		name, flag string
		into       *string
		exposed    string
	}{
		{"http", d.env.Flags.HTTP, &c.HTTP.Listen, watches},
		{"grpc", d.env.Flags.GRPC, &c.GRPC.Listen, watches},
		{"operations", d.env.Flags.Operations, &c.Operations.Listen, "do the same, and see the metrics, the addresses of clients and upstreams, and profiles"},
	} {
		if *l.into == OperationsOff || hosts.IsLoopback(*l.into) {
			continue
		}
		why := fmt.Sprintf("other machines can reach it, and the gateway asks nobody for credentials: "+
			"whoever reaches it could %s; listen on loopback, such as 127.0.0.1, or say that this is meant", l.exposed)
		if l.flag != "" {
			d.errs = append(d.errs, &Error{Message: fmt.Sprintf("--%s %s: %s: --auth none", l.name, l.flag, why)})
			continue
		}
		at, _ := d.text(d.given[l.into], wantListen, nil)
		d.errorf(at.value, "%q: %s: auth: none", at.written, why)
	}
}
