package setup

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nats looks for NATS where its command does.
func (e Environment) nats(told string) search {
	return func(ctx context.Context) *Source {
		address := cmp.Or(told, e.Getenv("NATS_URL"))
		if address == "" && listens(ctx, strings.TrimPrefix(e.NATS, "nats://")) {
			address = e.NATS
		}
		if address == "" {
			return nil
		}
		return e.askNATS(ctx, address)
	}
}

func (e Environment) askNATS(ctx context.Context, address string) *Source {
	servers, login := natsServers(address)
	s := &Source{Type: "nats", Where: servers, Fields: []string{"url: " + quoted(servers)}}
	options := []nats.Option{nats.Timeout(askingTime), nats.NoReconnect(), nats.Name("watchtide init")}
	switch file := e.Getenv("NATS_CREDS"); {
	case file != "":
		s.Fields = append(s.Fields, "credentials_file: "+quoted(absolute(file)))
		options = append(options, nats.UserCredentials(file))
	case login != nil:
		password, _ := login.Password()
		options = append(options, nats.UserInfo(login.Username(), password))
		s.Notes = append(s.Notes, "The password goes into a file that only this user can read:",
			"username: "+quoted(login.Username()), `password_file: "nats.password"`)
	}
	s.Watches, s.Problem = natsWatches(ctx, servers, options)
	return s
}

// natsServers returns the URLs of servers without the credentials in them, and these.
func natsServers(address string) (servers string, login *url.Userinfo) {
	var all []string
	for one := range strings.SplitSeq(address, ",") {
		one = strings.TrimSpace(one)
		if !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		if u, err := url.Parse(one); err == nil && u.User != nil {
			login, u.User = u.User, nil
			one = u.String()
		}
		all = append(all, one)
	}
	return strings.Join(all, ","), login
}

// natsWatches returns a watch for each of the first buckets.
func natsWatches(ctx context.Context, servers string, options []nats.Option) ([]Watch, error) {
	none := []Watch{{Name: "flags", Fields: "bucket: flags", Note: "there is no bucket yet: nats kv add flags"}}
	closed := make(chan struct{})
	conn, err := nats.Connect(servers, append(options, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))...)
	if err != nil {
		return none, err
	}
	defer func() { conn.Close(); <-closed }()
	js, err := jetstream.New(conn)
	if err != nil {
		return none, err
	}
	lister := js.KeyValueStoreNames(ctx)
	var buckets []string
	for name := range lister.Name() {
		buckets = append(buckets, name)
	}
	if err := lister.Error(); err != nil {
		return none, fmt.Errorf("buckets: %w", err)
	}
	if len(buckets) == 0 {
		return none, nil
	}
	slices.Sort(buckets)
	var watches []Watch
	for _, bucket := range buckets[:min(len(buckets), maxWatches)] {
		watches = append(watches, Watch{Name: watchName(bucket, "bucket"), Fields: "bucket: " + quoted(bucket)})
	}
	if rest := buckets[len(watches):]; len(rest) > 0 {
		watches[len(watches)-1].Note = "other buckets: " + strings.Join(rest[:min(len(rest), 2*maxWatches)], ", ")
	}
	return watches, nil
}
