package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"

	"github.com/watchtide/watchtide/internal/source/adapter"
	"github.com/watchtide/watchtide/stream"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// connection is a connection to a member of a cluster. Static after
// construction.
type connection struct {
	client   *clientv3.Client
	cluster  uint64
	revision uint64 // of the cluster, when the connection was made
	ordered  bool   // see version.ordered
	recalls  bool   // it knows what was deleted before; see history
	inUse    uint64 // bytes of the member's store
	largest  int    // bytes of a message
}

// connect connects to a member, logs in, and makes sure that it can report the
// state that its cluster agrees on.
func (s *Source) connect(ctx context.Context, e endpoint, largest int) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.ConnectTimeout,
		fmt.Errorf("no answer within %v", s.config.ConnectTimeout))
	defer cancel()
	config, err := s.config.client(ctx, e)
	if err != nil {
		return nil, err
	}
	config.MaxCallRecvMsgSize = largest
	client, err := clientv3.New(config)
	if err != nil {
		return nil, because(ctx, err)
	}
	c := &connection{client: client, largest: largest}
	if err := c.identify(ctx, s.keys); err != nil {
		c.close()
		return nil, because(ctx, err)
	}
	return c, nil
}

// client is the configuration of the client library for one endpoint. The context
// is that of the login alone.
func (c *Config) client(ctx context.Context, e endpoint) (clientv3.Config, error) {
	options := []grpc.DialOption{grpc.WithChainUnaryInterceptor(failFast)}
	if c.TLS != nil && c.TLS.ServerName != "" {
		// The library verifies the name of the endpoint in any case.
		options = append(options, grpc.WithAuthority(c.TLS.ServerName))
	}
	if c.network != nil {
		options = append(options, grpc.WithContextDialer(c.network))
	}
	password := ""
	if c.PasswordFile != "" {
		var err error
		if password, err = adapter.ReadSecret(c.PasswordFile); err != nil {
			return clientv3.Config{}, fmt.Errorf("password: %w", err)
		}
	}
	return clientv3.Config{
		Endpoints: []string{e.url(c.TLS != nil)}, TLS: c.TLS,
		Username: c.Username, Password: password,
		Context: ctx,
		// One for the request, one after a token was renewed, and one spare.
		MaxUnaryRetries: 3,
		DialOptions:     options, Logger: zap.NewNop(),
	}, nil
}

// failFast makes a request to an unreachable member fail at once, with the
// reason. The library would wait for the timeout, and not know the reason.
func failFast(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, request, reply, conn, append(options, grpc.WaitForReady(false))...)
}

// identify reads the cluster's id and revision, and the member's features.
func (c *connection) identify(ctx context.Context, keys keyRange) error {
	header, err := c.read(ctx, keys)
	if err != nil {
		return err
	}
	c.cluster, c.revision = header.GetClusterId(), uint64(header.GetRevision())
	status, err := etcdserverpb.NewMaintenanceClient(c.client.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return err
	}
	v, ok := parseVersion(status.GetVersion())
	if !ok || !v.supported() {
		return fmt.Errorf("it is etcd %.40q: want 3.4 or newer", status.GetVersion())
	}
	c.ordered = v.ordered()
	// Each revision took an entry of the cluster's log. If there are fewer of those, the store
	// was restored from a backup of another cluster, which may have the same id: what was
	// deleted there need not have been deleted here, and a position may be of either.
	c.recalls = keepsDeletes(status.GetVersion()) && status.GetRaftAppliedIndex() >= c.revision
	c.inUse = uint64(max(status.GetDbSizeInUse(), 1))
	return nil
}

// read reads the present revision of the cluster from its majority. It needs no
// permission beyond those of the watch.
func (c *connection) read(ctx context.Context, keys keyRange) (*etcdserverpb.ResponseHeader, error) {
	answer, err := c.client.Get(ctx, keys.start, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	return answer.Header, nil
}

// check rejects an answer of another cluster than the one that was connected to.
func (c *connection) check(h *etcdserverpb.ResponseHeader) error {
	if id := h.GetClusterId(); id != 0 && id != c.cluster {
		return fmt.Errorf("%w: cluster id is %x, was %x", errReplaced, id, c.cluster)
	}
	return nil
}

func (c *connection) close() { _ = c.client.Close() }

// WantEndpoint describes what ValidEndpoint accepts, for a user who wrote
// something else.
const WantEndpoint = `a member's address for clients, such as "https://etcd-1:2379" or "etcd-1:2379", with a port from 1 to 65535`

// ValidEndpoint reports whether a member can be at an endpoint: host:port, alone
// or after http:// or https://.
func ValidEndpoint(text string) bool {
	_, ok := parseEndpoint(text)
	return ok
}

// endpoint is where a member serves clients.
type endpoint struct {
	scheme  string // "http", "https", or "": depends on whether TLS is configured
	address string // host:port
}

func parseEndpoint(text string) (e endpoint, ok bool) {
	e.address = text
	if scheme, rest, found := strings.Cut(text, "://"); found {
		u, err := url.Parse(text)
		if err != nil || scheme != "http" && scheme != "https" || u.Host != strings.TrimSuffix(rest, "/") {
			return e, false
		}
		e.scheme, e.address = scheme, u.Host
	}
	return e, adapter.ValidHostPort(e.address) && !strings.ContainsAny(e.address, "@?#")
}

// url returns the endpoint as the client library expects it.
func (e endpoint) url(secure bool) string {
	switch {
	case e.scheme != "":
		return e.scheme + "://" + e.address
	case secure:
		return "https://" + e.address
	default:
		return "http://" + e.address
	}
}

// version is a server's version, as numbers.
type version struct{ major, minor, patch int }

// parseVersion parses for instance "3.4.23" or "3.6.0-rc.1".
func parseVersion(text string) (v version, ok bool) {
	text, _, _ = strings.Cut(text, "-")
	text, _, _ = strings.Cut(text, "+")
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return version{}, false
	}
	for i, into := range []*int{&v.major, &v.minor, &v.patch} {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return version{}, false
		}
		*into = int(n)
	}
	return v, true
}

// supported reports whether the server supports requests for progress.
func (v version) supported() bool {
	return v.major > 3 || v.major == 3 && v.minor >= 4
}

// ordered reports whether the answer to a request for progress comes after all
// events that precede it.
func (v version) ordered() bool {
	switch {
	case v.major != 3:
		return v.major > 3
	case v.minor == 4:
		return v.patch >= 31
	case v.minor == 5:
		return v.patch >= 13
	}
	return v.minor > 5
}

// keepsDeletes reports whether a watch from the past gets every delete that was not compacted when
// it began, also if there is a compaction meanwhile. Servers before 3.4.36 and 3.5.18, and those
// before the first release of 3.6, may leave some out.
func keepsDeletes(text string) bool {
	v, ok := parseVersion(text)
	if !ok || strings.Contains(text, "-") {
		return false
	}
	switch {
	case v.major != 3:
		return v.major > 3
	case v.minor == 4:
		return v.patch >= 36
	case v.minor == 5:
		return v.patch >= 18
	}
	return v.minor > 5
}

// epochs names revision orders. The name is derived from data that every replica
// of the gateway has, the cluster's id, the prefix and the kind of values, while nothing contradicts
// it.
//
// Owned by Watch.
type epochs struct {
	prefix string
	// suffix of a cluster whose store was replaced under the same id.
	suffix map[uint64]string
}

func newEpochs(prefix string, values stream.Values) epochs {
	if values != stream.AnyValues {
		prefix += "\x00" + string(values) // the same revision has another value
	}
	return epochs{prefix: prefix, suffix: map[uint64]string{}}
}

// of returns the name of the cluster's present revision order. It is short, so that
// it stays readable in the positions of views too, which append a suffix to it.
func (e *epochs) of(cluster uint64) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(e.prefix), cluster))
	return stream.CanonicalEpoch(hex.EncodeToString(sum[:4]) + e.suffix[cluster])
}

// adopt reports whether another process has given a name to the cluster's order. It has that name from now on.
func (e *epochs) adopt(cluster uint64, name string) bool {
	suffix, ours := strings.CutPrefix(name, e.of(cluster))
	if ours = ours && (suffix == "" || suffix[0] == '~'); ours {
		e.suffix[cluster] = suffix
	}
	return ours
}

// replace gives the cluster a name that it never had. The name is random, since
// etcd provides no data from which two replicas could derive the same name for
// the new store and no other.
func (e *epochs) replace(cluster uint64) {
	e.suffix[cluster] = fmt.Sprintf("~%06x", rand.IntN(1<<24))
}
