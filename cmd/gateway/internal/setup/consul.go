package setup

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/proto-public/pbresource"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/watchtide/watchtide/client"
)

// consulTypes are the types of resources that are looked for: those that Consul 1.18 and newer
// have outside of their own tests.
var consulTypes = []string{
	"multicluster.v2.ExportedServices", "multicluster.v2.NamespaceExportedServices", "multicluster.v2.PartitionExportedServices",
	"multicluster.v2.ComputedExportedServices",
}

// agent is what an agent says of itself.
type agent struct {
	Config      struct{ Version string }
	DebugConfig struct{ GRPCPort, GRPCTLSPort int }
}

// consul looks for Consul where its command does.
func (e Environment) consul(told string) search {
	return func(ctx context.Context) *Source {
		address := cmp.Or(told, e.Getenv("CONSUL_HTTP_ADDR"))
		if address == "" && listens(ctx, e.Consul) {
			address = e.Consul
		}
		if address == "" {
			return nil
		}
		return e.askConsul(ctx, address)
	}
}

func (e Environment) askConsul(ctx context.Context, address string) *Source {
	s := &Source{Type: "consul", Where: address, Notes: []string{"The gRPC port of a server or an agent of Consul 1.18 or newer."}}
	if e.Getenv("CONSUL_HTTP_TOKEN") != "" {
		s.Notes = append(s.Notes, "The token goes into a file that only this user can read:", `token_file: "consul.token"`)
	}
	s.Watches = []Watch{consulWatch(consulTypes[0])}
	base, err := e.consulURL(address)
	if err != nil {
		s.Problem = err
		return s
	}
	target, secure, err := e.consulTarget(ctx, base)
	s.Problem = err
	s.Fields = []string{"address: " + quoted(target)}
	if secure {
		s.Fields = append(s.Fields, "tls: "+mapping("ca_file", e.Getenv("CONSUL_CACERT")))
	}
	if err != nil {
		return s
	}
	if known := e.consulWatches(ctx, target, secure); len(known) > 0 {
		s.Watches = known
	}
	return s
}

// consulURL returns the URL at an address, which may be one or host:port.
func (e Environment) consulURL(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		scheme := "http://"
		if on, _ := strconv.ParseBool(e.Getenv("CONSUL_HTTP_SSL")); on {
			scheme = "https://"
		}
		address = scheme + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%q: want host:port or a URL", address)
	}
	return u, nil
}

// consulTarget asks an agent for its gRPC port. Unless it answers, that is the usual one.
func (e Environment) consulTarget(ctx context.Context, base *url.URL) (target string, secure bool, err error) {
	usual := net.JoinHostPort(base.Hostname(), "8502")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("v1/agent/self").String(), nil)
	if err != nil {
		return usual, false, err
	}
	if token := e.Getenv("CONSUL_HTTP_TOKEN"); token != "" {
		request.Header.Set("X-Consul-Token", token)
	}
	transport := client.NewTransport()
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, CheckRedirect: followNone}).Do(request)
	if err != nil {
		return usual, false, err
	}
	defer response.Body.Close()
	var a agent
	if response.StatusCode != http.StatusOK {
		return usual, false, fmt.Errorf("%s answers %s", base.Redacted(), response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return usual, false, fmt.Errorf("%s does not answer as Consul does", base.Redacted())
	}
	switch {
	case a.DebugConfig.GRPCPort > 0:
		return net.JoinHostPort(base.Hostname(), strconv.Itoa(a.DebugConfig.GRPCPort)), false, nil
	case a.DebugConfig.GRPCTLSPort > 0:
		return net.JoinHostPort(base.Hostname(), strconv.Itoa(a.DebugConfig.GRPCTLSPort)), true, nil
	}
	return usual, false, fmt.Errorf("consul %s at %s has no gRPC port: want ports { grpc = 8502 } in its configuration", a.Config.Version, base.Redacted())
}

func consulWatch(typ string) Watch {
	_, kind, _ := strings.Cut(strings.TrimPrefix(typ, "multicluster."), ".")
	return Watch{Name: watchName(kind, "resources"), Fields: "resource_type: " + typ}
}

// consulWatches returns the watches of the types that the server knows; none if it does not say.
func (e Environment) consulWatches(ctx context.Context, target string, secure bool) (watches []Watch) {
	channel := insecure.NewCredentials()
	if secure {
		channel = credentials.NewTLS(&tls.Config{})
	}
	conn, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(channel))
	if err != nil {
		return nil
	}
	defer conn.Close()
	if token := e.Getenv("CONSUL_HTTP_TOKEN"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-consul-token", token)
	}
	resources := pbresource.NewResourceServiceClient(conn)
	for _, typ := range consulTypes {
		part := strings.Split(typ, ".")
		answer, err := resources.List(ctx, &pbresource.ListRequest{
			Type:    &pbresource.Type{Group: part[0], GroupVersion: part[1], Kind: part[2]},
			Tenancy: &pbresource.Tenancy{},
		})
		if err != nil {
			continue
		}
		w := consulWatch(typ)
		w.Note = fmt.Sprintf("resources: %d", len(answer.GetResources()))
		watches = append(watches, w)
	}
	return watches
}
