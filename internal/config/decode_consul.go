package config

import "github.com/watchtide/watchtide/stream/source/consul"

// consul returns the readers for the keys of a source of type consul.
func (d *decoder) consul(c *ConsulSource) map[string]field {
	return map[string]field{
		"address":           d.strThat(consul.WantAddress, consul.ValidAddress, &c.Address),
		"tls":               d.clientTLS(&c.TLS),
		"token_file":        d.tokenFile(&c.TokenFile),
		"probe_interval":    d.durationAtLeast(consul.MinProbe, &c.ProbeInterval),
		"list_interval":     d.durationAtLeast(consul.MinRelist, &c.ListInterval),
		"max_message_bytes": d.messageSize(&c.MaxMessageBytes),
	}
}

// consulWatch returns the readers for the keys that only watches of resources have.
func (d *decoder) consulWatch(w *ConsulWatch) map[string]field {
	unit := func(into *string) field {
		return d.strThat(consul.WantTenancy, consul.ValidTenancy, into)
	}
	return map[string]field{
		"resource_type": d.strThat(consul.WantType, validConsulType, &w.ResourceType),
		"name_prefix":   d.strThat(consul.WantNamePrefix, consul.ValidNamePrefix, &w.NamePrefix),
		"tenancy": func(v value) {
			d.object(v, map[string]field{"partition": unit(&w.Partition), "namespace": unit(&w.Namespace)})
		},
	}
}

func validConsulType(name string) bool {
	_, err := consul.ParseType(name)
	return err == nil
}
