package host

import (
	"os/user"
	"strconv"
	"time"
)

// userNameAge is how long a name is used before it is looked up again: users
// come and go, and a look-up may read a file or ask a directory server.
const userNameAge = 5 * time.Minute

// userNames is a cache of user names. Not safe for concurrent use.
type userNames struct {
	lookUp func(uid string) (*user.User, error)
	names  map[uint64]string
	expire time.Time
}

func newUserNames() *userNames { return &userNames{lookUp: user.LookupId} }

// name returns the name of the user, or the number of one that has none.
func (u *userNames) name(uid uint64) string {
	if now := time.Now(); u.names == nil || now.After(u.expire) {
		u.names, u.expire = map[uint64]string{}, now.Add(userNameAge)
	}
	if name, ok := u.names[uid]; ok {
		return name
	}
	name := strconv.FormatUint(uid, 10)
	if found, err := u.lookUp(name); err == nil {
		name = found.Username
	}
	u.names[uid] = name
	return name
}
