package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcd looks for etcd where etcdctl does.
func (e Environment) etcd(told string) search {
	return func(ctx context.Context) *Source {
		from := told
		if from == "" {
			from = e.Getenv("ETCDCTL_ENDPOINTS")
		}
		if from == "" && listens(ctx, e.Etcd) {
			from = e.Etcd
		}
		if from == "" {
			return nil
		}
		var endpoints []string
		for endpoint := range strings.SplitSeq(from, ",") {
			endpoints = append(endpoints, strings.TrimSpace(endpoint))
		}
		return e.askEtcd(ctx, endpoints)
	}
}

func (e Environment) askEtcd(ctx context.Context, endpoints []string) *Source {
	s := &Source{Type: "etcd", Where: strings.Join(endpoints, ", "), Fields: []string{"endpoints: " + quotedList(endpoints)}}
	config := clientv3.Config{Endpoints: endpoints, Context: ctx, DialTimeout: askingTime, Logger: zap.NewNop()}
	certificates := transport.TLSInfo{
		TrustedCAFile: e.Getenv("ETCDCTL_CACERT"), CertFile: e.Getenv("ETCDCTL_CERT"), KeyFile: e.Getenv("ETCDCTL_KEY"),
		Logger: zap.NewNop(),
	}
	if certificates.TrustedCAFile != "" || certificates.CertFile != "" {
		s.Fields = append(s.Fields, "tls: "+mapping("ca_file", certificates.TrustedCAFile, "cert_file", certificates.CertFile, "key_file", certificates.KeyFile))
		if config.TLS, s.Problem = certificates.ClientConfig(); s.Problem != nil {
			s.Watches = []Watch{{Name: "keys"}}
			return s
		}
	}
	if user := e.Getenv("ETCDCTL_USER"); user != "" {
		config.Username, config.Password, _ = strings.Cut(user, ":")
		if config.Password == "" {
			config.Password = e.Getenv("ETCDCTL_PASSWORD")
		}
		s.Notes = append(s.Notes, "The password goes into a file that only this user can read:",
			"username: "+quoted(config.Username), `password_file: "etcd.password"`)
	}
	s.Watches, s.Problem = etcdWatches(ctx, config)
	if s.Problem != nil && ctx.Err() != nil {
		s.Problem = fmt.Errorf("no answer within %v", askingTime) // the library does not say more
	}
	return s
}

func allKeys(count int64) Watch {
	return Watch{Name: "keys", Note: fmt.Sprintf("all keys: %d; narrow it with prefix", count)}
}

// etcdWatches returns a watch for each first part of the keys, or one of all of them.
func etcdWatches(ctx context.Context, config clientv3.Config) ([]Watch, error) {
	everything := []Watch{{Name: "keys"}}
	client, err := clientv3.New(config)
	if err != nil {
		return everything, err
	}
	defer client.Close()
	all, err := client.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		return everything, err
	}
	everything = []Watch{allKeys(all.Count)}
	var watches []Watch
	for from := "\x00"; ; {
		next, err := client.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return everything, err
		}
		if len(next.Kvs) == 0 {
			break
		}
		prefix := firstPart(next.Kvs[0].Key)
		if prefix == "" || len(watches) == maxWatches {
			return everything, nil
		}
		below, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return everything, err
		}
		watches = append(watches, Watch{Name: watchName(prefix, "keys"), Fields: "prefix: " + quoted(prefix), Note: fmt.Sprintf("keys: %d", below.Count)})
		from = clientv3.GetPrefixRangeEnd(prefix)
	}
	if len(watches) == 0 {
		return everything, nil
	}
	return watches, nil
}

// firstPart returns the first part of a key, with the slash behind it; "": it has none.
func firstPart(key []byte) string {
	at := slices.Index(key, '/')
	if at == 0 {
		at = 1 + slices.Index(key[1:], '/')
	}
	if at <= 0 || !utf8.Valid(key[:at+1]) {
		return ""
	}
	return string(key[:at+1])
}
