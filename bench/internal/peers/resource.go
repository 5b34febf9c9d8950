package peers

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// key is the name of resource i.
func key(i int) string { return fmt.Sprintf("resource-%07d", i) }

// resourceValue is the JSON of resource i, of a given size if that is at least 190.
// It is as compressible as an entry of a service registry: about a fifth is random.
func resourceValue(i, size int) []byte {
	h := sha256.Sum256([]byte(key(i)))
	value := fmt.Sprintf(`{"id":"%x","address":"10.%d.%d.%d:%d","node":"node-%03d","zone":"zone-%d","created":"2026-%02d-%02dT%02d:%02d:%02dZ","state":"passing","labels":{"team":"t%02d","note":"`,
		h[:16], h[16], h[17], h[18], 1024+int(h[19])*200, h[20], h[21]%3,
		1+h[22]%12, 1+h[23]%28, h[24]%24, h[25]%60, h[26]%60, h[27]%40)
	const end = `"}}`
	const text = "runs behind the front proxy and is restarted by its unit when the probe has failed three times; "
	missing := max(0, size-len(value)-len(end))
	return []byte(value + strings.Repeat(text, missing/len(text)+1)[:missing] + end)
}
