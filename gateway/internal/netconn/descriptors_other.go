//go:build !unix

package netconn

// descriptorLimit returns how many connections and files this process may have. Here
// the system does not report it.
func descriptorLimit() int { return 16 << 10 }
