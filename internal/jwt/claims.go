package jwt

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/watchtide/watchtide/access"
)

const (
	// leeway is how far the clock of an issuer may be ahead.
	leeway = 30 * time.Second
	// lastSecond is the last one of the year 9999.
	lastSecond = 253402300799
)

func invalid(format string, args ...any) error {
	return access.NewRefusal(access.InvalidToken, fmt.Sprintf(format, args...))
}

// times checks the times of a token, but not whether it has expired.
func times(claims map[string]any, now time.Time) (expires time.Time, err error) {
	for name, required := range map[string]bool{"exp": true, "nbf": false, "iat": false} {
		value, given := claims[name]
		if !given && !required {
			continue
		}
		at, ok := seconds(value)
		switch {
		case !given:
			return expires, invalid("the token never expires: want a claim exp")
		case !ok:
			return expires, invalid("the token's claim %s is not a time: want seconds since 1970", name)
		case name == "exp":
			expires = at
		case at.After(now.Add(leeway)):
			return expires, access.Later(access.TokenNotYetValid, "the token is not valid yet: are the clocks right?", at.Sub(now))
		}
	}
	return expires, nil
}

// seconds reads a time (RFC 7519, section 2), which may have a fraction.
func seconds(value any) (time.Time, bool) {
	switch n := value.(type) {
	case int64:
		return time.Unix(n, 0), n >= 0 && n <= lastSecond
	case float64:
		if !(n >= 0 && n <= lastSecond) {
			return time.Time{}, false
		}
		whole := int64(n)
		return time.Unix(whole, int64((n-float64(whole))*1e9)), true
	}
	return time.Time{}, false
}

// isFor reports whether a token is for an audience.
func isFor(claims map[string]any, audience string) bool {
	switch aud := claims["aud"].(type) {
	case string:
		return aud == audience
	case []any:
		return slices.Contains(aud, any(audience))
	}
	return false
}

// principal returns the principal of the claims.
func (i *Issuer) principal(claims map[string]any, expires time.Time) (*access.Principal, error) {
	name, ok := at(claims, i.Name).(string)
	if !ok || !isName(name) {
		return nil, invalid("the token's claim %s has no name", i.Name)
	}
	groups, err := i.groups(claims)
	if err != nil {
		return nil, err
	}
	return &access.Principal{
		Mechanism: access.JWT, Issuer: i.URL, Name: name, Groups: groups, Claims: claims, Expires: expires,
	}, nil
}

// isName reports whether a text is a unique name. Unpaired surrogates, which JSON can write,
// are all decoded to the same replacement character.
func isName(text string) bool {
	return text != "" && !strings.ContainsRune(text, utf8.RuneError)
}

// at returns the claim at a path: the member with the whole name, or else the one that the
// names between the dots lead to; nil: there is none.
func at(claims map[string]any, path string) any {
	if value, found := claims[path]; found {
		return value
	}
	var value any = claims
	for name := range strings.SplitSeq(path, ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	return value
}

// scopes are claims whose text is a list with spaces between (RFC 8693, section 4.2).
var scopes = []string{"scope", "scp"}

func (i *Issuer) groups(claims map[string]any) ([]string, error) {
	if i.Groups == "" {
		return nil, nil
	}
	switch value := at(claims, i.Groups).(type) {
	case nil:
		return nil, nil
	case string:
		if slices.Contains(scopes, i.Groups) {
			return checked(strings.Fields(value), i.Groups)
		}
		return checked([]string{value}, i.Groups)
	case []any:
		groups := make([]string, len(value))
		for n, v := range value {
			groups[n], _ = v.(string)
		}
		return checked(groups, i.Groups)
	}
	return nil, invalid("the token's claim %s is not a list of names", i.Groups)
}

func checked(groups []string, path string) ([]string, error) {
	for _, g := range groups {
		if !isName(g) {
			return nil, invalid("the token's claim %s is not a list of names", path)
		}
	}
	return groups, nil
}
