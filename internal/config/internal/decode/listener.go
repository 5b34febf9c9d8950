package decode

import (
	"net"
	"strconv"
	"strings"
	"unicode"
)

// SameListener reports whether two addresses conflict: they are equal, or have the same port,
// and one is every interface.
func SameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || includes(hostA, hostB) || includes(hostB, hostA)
}

// includes reports whether one host is every interface, including the other host's.
func includes(every, other string) bool {
	return every == "" || every == "::" || every == "0.0.0.0" && !strings.Contains(other, ":")
}

// ValidListen reports whether address is host:port with a port number. The host
// may be missing, and is not looked up here.
func ValidListen(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.ContainsFunc(host, notInHost) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// notInHost reports whether the rune occurs neither in a name nor in an
// IP address, with or without a zone.
func notInHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:%", r)
}
