package consul

import (
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

// WantAddress describes what ValidAddress accepts, for a user who wrote
// something else.
const WantAddress = `host:port, such as "127.0.0.1:8502" or "dns:///consul:8503", the gRPC port of a Consul server or agent`

// ValidAddress reports whether a server can be at an address: host:port, or one
// in gRPC's notation with a built-in scheme.
func ValidAddress(address string) bool {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case found && scheme == "dns":
		if server, target, ok := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); ok && strings.HasPrefix(rest, "//") {
			return !strings.ContainsAny(server, " ") && validHostPort(target)
		}
		return validHostPort(rest)
	case found && resolver.Get(scheme) != nil:
		return rest != "" && rest != "//"
	}
	return validHostPort(address)
}

func validHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || strings.ContainsAny(host, " /") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
