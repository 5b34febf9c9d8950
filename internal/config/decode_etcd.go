package config

import "github.com/watchtide/watchtide/stream/source/etcd"

// etcd returns the readers for the keys of a source of type etcd.
func (d *decoder) etcd(s *EtcdSource) map[string]field {
	return map[string]field{
		"endpoints":       d.list(etcd.WantEndpoint, etcd.ValidEndpoint, &s.Endpoints),
		"tls":             d.clientTLS(&s.TLS),
		"username":        d.str(&s.Username),
		"password_file":   d.secretFile(&s.Password),
		"connect_timeout": d.duration(&s.ConnectTimeout),
		"request_timeout": d.duration(&s.RequestTimeout),
		"stall_after":     d.durationAtLeast(etcd.MinStallAfter, &s.StallAfter),
	}
}
