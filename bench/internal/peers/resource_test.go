//go:build peers

package peers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"
)

// TestResourceValue: JSON of the requested size, and as compressible as documented.
func TestResourceValue(t *testing.T) {
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	const n, size = 1000, 300
	for i := range n {
		value := resourceValue(i, size)
		if len(value) != size || !json.Valid(value) {
			t.Fatalf("%d bytes, want %d of JSON: %s", len(value), size, value)
		}
		w.Write(value)
	}
	w.Close()
	if share := float64(small.Len()) / n / size; share < 0.1 || share > 0.25 {
		t.Errorf("gzip makes %.2f of it, want something like a registry's", share)
	}
}
