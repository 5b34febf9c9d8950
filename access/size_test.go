package access

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// TestSizeIsThatOfMemory: tables of principals are bounded by it, so no kind of claims takes
// much more.
func TestSizeIsThatOfMemory(t *testing.T) {
	many := func(text string) string { return `{"x":[` + strings.Repeat(text+",", 999) + text + `]}` }
	for name, claims := range map[string]string{
		"texts": many(`"text"`), "one text": `{"x":"` + strings.Repeat("x", 10_000) + `"}`, "numbers": many("12345.5"), "empty lists": many("[]"), "lists": many("[[]]"),
		"empty objects": many("{}"), "objects": many(`{"a":1}`), "deep objects": many(`{"a":{"a":{}}}`), "large objects": many(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`),
	} {
		kept := make([]*Principal, 100)
		before := heap()
		for i := range kept {
			kept[i] = &Principal{Name: "ann"}
			if err := json.Unmarshal([]byte(claims), &kept[i].Claims); err != nil {
				t.Fatal(err)
			}
		}
		takes, size := int(heap()-before)/len(kept), kept[0].Size()
		if size < takes*8/10 || size > 4*takes+1024 {
			t.Errorf("%s: the size of a principal that takes %d bytes is %d", name, takes, size)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
