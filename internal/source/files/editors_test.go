package files

import (
	"os"
	"testing"
	"time"
)

// TestEditors saves a file in the ways of several programs. No subscriber may see
// a deletion, a half-written value, a file of the editor's own, or a stale
// status.
func TestEditors(t *testing.T) {
	for _, c := range []struct {
		name string
		save func(d disk, text string)
	}{
		{"write and rename", func(d disk, text string) { d.must(d.replace("a.json", text)) }},
		{"in place", func(d disk, text string) { d.write("a.json", text) }},
		{"in pieces", func(d disk, text string) {
			f, err := os.Create(d.path("a.json"))
			d.must(err)
			for i := range text {
				_, err := f.WriteString(text[i : i+1])
				d.must(err)
			}
			d.must(f.Close())
		}},
		{"vim", func(d disk, text string) {
			d.write(".a.json.swp", "b0VIM")
			d.write("4913", "")
			d.remove("4913")
			d.rename("a.json", "a.json~")
			d.write("a.json", text)
			d.remove("a.json~")
			d.remove(".a.json.swp")
		}},
		{"emacs", func(d disk, text string) {
			d.link("someone@somewhere.123:1767225600", ".#a.json")
			d.write("#a.json#", text)
			d.write("a.json~", "1")
			d.write("a.json", text)
			d.remove("#a.json#")
			d.remove(".#a.json")
		}},
		{"JetBrains", func(d disk, text string) {
			d.write("a.json___jb_tmp___", text)
			d.rename("a.json", "a.json___jb_old___")
			d.rename("a.json___jb_tmp___", "a.json")
			d.remove("a.json___jb_old___")
		}},
		{"rsync", func(d disk, text string) {
			d.write(".a.json.Xk3dE9", text)
			d.must(os.Chtimes(d.path(".a.json.Xk3dE9"), time.Unix(1, 0), time.Unix(1, 0)))
			d.rename(".a.json.Xk3dE9", "a.json")
		}},
		{"delete and make", func(d disk, text string) {
			d.remove("a.json")
			d.write("a.json", text)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			d.write("a.json", `{"n":1}`)
			w := watchByHand(t, d)
			c.save(d, `{"n":2}`)
			w.settle()
			w.want(2, map[string]string{"a": `{"n":2}`})
			c.save(d, `{"n":3}`)
			w.settle()
			w.want(3, map[string]string{"a": `{"n":3}`})
		})
	}
}
