package adapter

import (
	"net"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

// ValidAddress reports whether a server can be at an address: host:port, which gRPC
// resolves by DNS, or one in gRPC's notation with a built-in scheme. A port is
// required, since gRPC's default, 443, is hardly ever meant.
func ValidAddress(address string) bool {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case found && scheme == "dns":
		if server, target, ok := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); ok && strings.HasPrefix(rest, "//") {
			return !strings.ContainsAny(server, " ") && ValidHostPort(target)
		}
		return ValidHostPort(rest)
	case found && resolver.Get(scheme) != nil:
		return rest != "" && rest != "//"
	}
	return ValidHostPort(address)
}

// ValidHostPort reports whether a text is host:port, with a port from 1 to 65535.
func ValidHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || strings.ContainsAny(host, " /") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
