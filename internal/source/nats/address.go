package nats

import (
	"net/url"
	"strconv"
	"strings"
)

// Descriptions of valid texts, for error messages.
const (
	WantURL    = `nats://host:port or tls://host:port, several separated by commas, without user, password or token`
	WantBucket = `letters, digits, "-" and "_"`
	WantKeys   = `tokens between dots, where "*" is any token and a last ">" is any rest, such as "eu.*.price" or "eu.>"`
	WantPrefix = `tokens between dots, without wildcards`
)

// servers splits a URL into the servers that it names.
func servers(list string) []string {
	all := strings.Split(list, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// ValidURL reports whether a URL names servers. It must not contain credentials,
// since URLs are logged.
func ValidURL(list string) bool {
	for _, server := range servers(list) {
		if !validServer(server) {
			return false
		}
	}
	return true
}

func validServer(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "nats" && u.Scheme != "tls" {
		return false
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
		return false
	}
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":") // 4222
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// hidden returns a URL without the part before an @, which may be a secret.
func hidden(list string) string {
	if at := strings.LastIndexByte(list, '@'); at >= 0 {
		return "…" + list[at:]
	}
	return list
}

// ValidBucket reports whether a bucket can have the name.
func ValidBucket(name string) bool {
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return name != ""
}

// ValidKeys reports whether a pattern can match keys.
func ValidKeys(pattern string) bool { return validSubject(pattern, true) }

// ValidPrefix reports whether subjects can begin with a prefix.
func ValidPrefix(prefix string) bool { return validSubject(prefix, false) }

// validSubject reports whether a text is a subject, or a pattern of subjects.
func validSubject(subject string, wildcards bool) bool {
	tokens := strings.Split(subject, ".")
	for i, token := range tokens {
		switch {
		case token == "" || strings.ContainsAny(token, " \t\r\n\f\x00"):
			return false
		case token == "*" || token == ">" && i == len(tokens)-1:
			if !wildcards {
				return false
			}
		case strings.ContainsAny(token, "*>"):
			return false
		}
	}
	return true
}
