package config

import (
	"cmp"
	"fmt"

	"github.com/watchtide/watchtide/internal/headers"
)

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
	if f.Auth == NoAuth {
		c.Auth = Auth{None: true}
	}
}

// exposure rejects listeners that other machines can reach, unless the configuration has the
// section auth, or the word none.
func (d *decoder) exposure(c *Config) {
	if c.Auth.None || c.Auth.Given {
		return
	}
	const watches = "read every watch, and write to those that can be written"
	for _, l := range []struct {
		name, flag string
		into       *string
		exposed    string
	}{
		{"http", d.flags.HTTP, &c.HTTP.Listen, watches},
		{"grpc", d.flags.GRPC, &c.GRPC.Listen, watches},
		{"operations", d.flags.Operations, &c.Operations.Listen, "do the same, and see the metrics, the addresses of clients and upstreams, and profiles"},
	} {
		if *l.into == "" || *l.into == OperationsOff || headers.IsLoopback(*l.into) {
			continue
		}
		why := fmt.Sprintf("other machines can reach it, and the gateway asks nobody for credentials: "+
			"whoever reaches it could %s; listen on loopback, such as 127.0.0.1, or say that this is meant", l.exposed)
		if l.flag != "" {
			d.Errs = append(d.Errs, &Error{Message: fmt.Sprintf("--%s %s: %s: --auth none", l.name, l.flag, why)})
			continue
		}
		at, _ := d.Text(d.Given[l.into], wantListen, nil)
		d.Errorf(at.Value, "%q: %s: auth: none", at.Written, why)
	}
}
