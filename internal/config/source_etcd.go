package config

import (
	"crypto/tls"
	"time"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

// EtcdSource is a source of type "etcd": the keys of an etcd cluster.
type EtcdSource struct {
	// Endpoints are members of the cluster, each host:port, alone or after http://
	// or https://.
	Endpoints []string `yaml:"endpoints,required,is=etcd endpoint"`
	// TLS is made of "tls", as for a source of type grpc; nil: plain text, except
	// for endpoints with https://.
	TLS *tls.Config `yaml:"tls"`
	// Username and Password log in. The password is read from a file, once at start.
	Username string `yaml:"username"`
	Password Secret `yaml:"password_file"`
	// ConnectTimeout is how long connecting to a member may take.
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	// RequestTimeout is how long a member may take to answer.
	RequestTimeout time.Duration `yaml:"request_timeout"`
	// StallAfter is the silence after which a member counts as stalled.
	StallAfter time.Duration `yaml:"stall_after,min=500ms"`
}

const wantBoth = "want both username and password_file, or neither"

func (e *EtcdSource) check(d *decoder, at decode.Value) {
	if d.IsGiven(&e.Username) != d.IsGiven(&e.Password) {
		d.Errorf(at, wantBoth)
	}
}
