package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/access"
)

// Prefixes are what a cluster puts before the names and the groups of the users of an OpenID provider.
type Prefixes struct{ Name, Groups string }

// reserved is what the names begin with that Kubernetes keeps for itself.
const reserved = "system:"

// UserOf returns a function that returns how a cluster knows a principal; false: it does not. issuer is
// that of its own users, and providers are the OpenID providers whose users it knows, by their issuers.
//
// A provider cannot name a user "system:": a user of such a name is not known, and a group of such a
// name is left out.
func UserOf(issuer string, providers map[string]Prefixes) func(*access.Principal) (User, bool) {
	return func(p *access.Principal) (User, bool) {
		var u User
		switch {
		case p.Mechanism == access.Kubernetes && p.Issuer == issuer:
			u = User{Name: p.Name, Groups: p.Groups, Extra: map[string][]string{}}
			u.UID, _ = p.Claims[claimUID].(string)
			extra, _ := p.Claims[claimExtra].(map[string]any)
			for key, values := range extra {
				u.Extra[key] = texts(values)
			}
		case p.Mechanism == access.JWT:
			prefixes, known := providers[p.Issuer]
			if u = ofProvider(p, prefixes); !known || strings.HasPrefix(u.Name, reserved) {
				return User{}, false
			}
		default:
			return User{}, false
		}
		return u, len(u.Groups) <= maxGroups && u.size() <= maxUserBytes
	}
}

// ofProvider returns how a cluster knows a user of a provider. Every user that it knows is in the group
// system:authenticated.
func ofProvider(p *access.Principal, prefixes Prefixes) User {
	u := User{Name: prefixes.Name + p.Name}
	for _, g := range p.Groups {
		if g = prefixes.Groups + g; !strings.HasPrefix(g, reserved) {
			u.Groups = append(u.Groups, g)
		}
	}
	u.Groups = append(u.Groups, reserved+"authenticated")
	return u
}

// keyOf returns a hash that only equal users and resources share. Each part is preceded by its length.
func keyOf(u User, of Resource) hash {
	var key []byte
	parts := func(texts ...string) {
		key = binary.AppendUvarint(key, uint64(len(texts)))
		for _, text := range texts {
			key = binary.AppendUvarint(key, uint64(len(text)))
			key = append(key, text...)
		}
	}
	parts(of.Group, of.Name, of.Namespace, of.LabelsAt, u.Name, u.UID)
	parts(slices.Sorted(slices.Values(u.Groups))...)
	for _, name := range slices.Sorted(maps.Keys(u.Extra)) {
		parts(name)
		parts(u.Extra[name]...)
	}
	return sha256.Sum256(key)
}
