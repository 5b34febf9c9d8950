//go:build !unix

package gateway

// descriptorLimit is how many connections and files this process may have: here the
// system does not say.
func descriptorLimit() int { return 16 << 10 }
