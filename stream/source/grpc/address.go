package grpc

import (
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

// WantAddress describes what ValidAddress accepts, for a user who wrote something
// else.
const WantAddress = `host:port, such as "backend:9000" or "dns:///backend:9000", with a port from 1 to 65535`

// ValidAddress reports whether a server can be at an address: host:port, which gRPC
// resolves by DNS, or one in gRPC's notation with a built-in scheme. A port is
// required, since gRPC's default, 443, is hardly ever meant.
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
