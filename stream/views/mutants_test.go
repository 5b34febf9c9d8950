package views

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a fault, as the replacement of a text in a file of this module.
type mutant struct{ name, file, old, new string }

// mutants are faults that TestAgainstTheModel must find. Otherwise it would not find other
// faults of their kind either.
var mutants = []mutant{
	{
		"what leaves a view leaves no delete",
		"stream/views/entry.go",
		"\te.state.Remove(c)\n\treturn true",
		"\treturn true",
	},
	{
		"a view that is made has no deletes",
		"stream/views/batch.go",
		"\tif c.NewerThan(b.lowest) {",
		"\tif c.NewerThan(b.lowest) && false {",
	},
	{
		"a view accepts positions from before it was made",
		"stream/log/part.go",
		"w.next.Horizon, w.next.HorizonAge = low,",
		"w.next.Horizon, w.next.HorizonAge = 0*low,",
	},
	{
		"a view accepts all positions of the run",
		"stream/log/part.go",
		"Horizon: low}",
		"Horizon: 0 * low}",
	},
	{
		"a new generation of the watch is not noticed",
		"stream/views/lane.go",
		"case s.Generation() != l.at.Generation() || s.Forgotten() > l.at.Seq():",
		"case s.Forgotten() > l.at.Seq()+1<<60:",
	},
	{
		"a delete without a revision has one in a view",
		"stream/log/part.go",
		"\tto.Flags |= e.e.Flags & segment.UnnumberedDelete\n",
		"",
	},
	{
		"a view that is made is thought to have every change",
		"stream/log/part.go",
		"w.next.Seq, w.next.Intact, w.next.Readable = 0, s.v.Seq, s.v.Seq",
		"w.next.Seq, w.next.Intact, w.next.Readable = 0, 0, s.v.Seq",
	},
	{
		"each change in a view is a transaction",
		"stream/log/part.go",
		"\tp.unclosed = to\n\tp.added",
		"\tto.Flags |= segment.EndsCommit\n\tp.unclosed = to\n\tp.added",
	},
	{
		"a view knows of all deletes",
		"stream/log/internal/version/version.go",
		"v.Revision, v.Swept, v.Committed, v.Status = of.Revision, of.Swept, of.Committed, of.Status",
		"v.Revision, v.Swept, v.Committed, v.Status = of.Revision, of.Revision, of.Committed, of.Status",
	},
	{
		"the former value is not looked up",
		"stream/views/bundle.go",
		"\tif had && !before.Deleted() {\n\t\told",
		"\tif had && !before.Deleted() && false {\n\t\told",
	},
}

// TestMutants builds this package with each fault, and checks that the model finds it.
func TestMutants(t *testing.T) {
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			text, err := m.apply(module)
			if err != nil {
				t.Fatal(err)
			}
			if testing.Short() && i > 0 {
				t.Skip("one shows that it works")
			}
			m.find(t, module, text)
		})
	}
}

// apply returns the file with the fault.
func (m *mutant) apply(module string) (string, error) {
	source, err := os.ReadFile(filepath.Join(module, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s holds %q %d times, want once: the code has changed, so change the mutant too", m.file, m.old, n)
	}
	return strings.Replace(string(source), m.old, m.new, 1), nil
}

// find runs the model with the fault.
func (m *mutant) find(t *testing.T, module, text string) {
	dir := t.TempDir()
	mutated, overlay, binary := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "test")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(module, m.file): mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{mutated: []byte(text), overlay: replace} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not build: %v\n%s", err, out)
	}
	out, err := exec.Command(binary, "-test.run=TestAgainstTheModel", "-test.failfast").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "broke ") {
		t.Errorf("the model does not find it: %v\n%.2000s", err, out)
	}
}
