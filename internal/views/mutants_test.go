package views

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutant is a fault, as the replacement of a text in a file of this module.
type mutant struct{ name, file, old, new string }

// leaks are faults that the tests of confidentiality must find.
var leaks = []mutant{
	{
		"a delete that may be superfluous is sent",
		"internal/views/entry.go",
		"\tlacks := e.hides && was == unknown",
		"\tlacks := e.hides && was == unknown && false",
	},
	{
		"what left a view long ago is deleted at its last change",
		"internal/views/batch.go",
		"\tcase b.hides:\n\t\tb.findLeaving(c, r)",
		"\tcase b.hides && false:\n\t\tb.findLeaving(c, r)",
	},
	{
		"the same in a view whose filter is costly",
		"internal/views/entry.go",
		"\t\tif e.hides || !before.NewerThan(e.low) {",
		"\t\tif !before.NewerThan(e.low) {",
	},
	{
		"a projection keeps a field of another grant",
		"internal/view/granted.go",
		"\t\tif held.bits&(1<<i) != 0 {\n\t\t\tall",
		"\t\tif held.bits != 0 {\n\t\t\tall",
	},
	{
		"what a client asks for is evaluated on what is hidden",
		"internal/view/restricted.go",
		"\tleft.set(&r)",
		"\t_ = r\n\tleft.set(e.resource)",
	},
	{
		"what the grants leave is not projected",
		"internal/view/definition.go",
		"func (d *Definition) Projects() bool { return len(d.fields) > 0 || d.grants != nil && d.grants.narrow }",
		"func (d *Definition) Projects() bool { return len(d.fields) > 0 }",
	},
	{
		"what lies between the resources of a view is sent too",
		"internal/log/batch.go",
		"\tfor i := from; s.Lent && i < to-1; i++ {",
		"\tfor i := from; s.Lent && i < 0; i++ {",
	},
	{
		"a window is sorted by what is hidden",
		"internal/views/sorted.go",
		"\tif projected == nil {\n",
		"\tif projected == nil || t.begun {\n",
	},
	{
		"the rows of a window show what is hidden",
		"internal/views/window.go",
		"\tif t.definition.Projects() {\n",
		"\tif t.definition.Projects() && !t.begun {\n",
	},
	{
		"what left a window is deleted with the newest change",
		"internal/views/window.go",
		"windowChange{at: w.left[key], key: key}",
		"windowChange{at: t.revision, key: key}",
	},
}

// windowLeaks are faults that show how much is hidden. The windows' own checks find them.
var windowLeaks = []mutant{
	{
		"the total of a window counts what is hidden",
		"internal/views/window.go",
		"Total: tree.Len(), ",
		"Total: max(tree.Len(), 3), ",
	},
}

// mutants are faults that TestAgainstTheModel must find. Otherwise it would not find other
// faults of their kind either.
var mutants = []mutant{
	{
		"what leaves a view leaves no delete",
		"internal/views/entry.go",
		"\te.take(c)\n\treturn true",
		"\treturn true",
	},
	{
		"a view that is made has no deletes",
		"internal/views/batch.go",
		"\tcase !recent:\n",
		"\tcase !recent || !b.hides:\n",
	},
	{
		"a view accepts positions from before it was made",
		"internal/log/view.go",
		"w.next.Horizon, w.next.HorizonAge = low,",
		"w.next.Horizon, w.next.HorizonAge = 0*low,",
	},
	{
		"a view accepts all positions of the run",
		"internal/log/view.go",
		"Horizon: low,",
		"Horizon: 0 * low,",
	},
	{
		"a new generation of the watch is not noticed",
		"internal/views/feeder.go",
		"case s.Generation() != f.at.Generation() || s.Forgotten() > f.at.Seq():",
		"case s.Forgotten() > f.at.Seq()+1<<60:",
	},
	{
		"a delete without a revision has one in a view",
		"internal/log/view.go",
		"\tto.Flags |= e.e.Flags & storage.UnnumberedDelete\n",
		"",
	},
	{
		"each change in a view is a transaction",
		"internal/log/view.go",
		"\tp.unclosed = to\n\tp.added",
		"\tto.Flags |= storage.EndsCommit\n\tp.unclosed = to\n\tp.added",
	},
	{
		"a view knows of all deletes",
		"internal/storage/version.go",
		"v.Revision, v.DeletesCompleteTo, v.Committed, v.Status = of.Revision, of.DeletesCompleteTo, of.Committed, of.Status",
		"v.Revision, v.DeletesCompleteTo, v.Committed, v.Status = of.Revision, of.Revision, of.Committed, of.Status",
	},
	{
		"the former value is not looked up",
		"internal/views/bundle.go",
		"\tif had && !before.Deleted() {\n\t\told",
		"\tif had && !before.Deleted() && false {\n\t\told",
	},
}

// windowMutants are faults that TestWindowsAgainstTheModel must find.
var windowMutants = []mutant{
	{
		"a move leaves out what the reader has an older value of",
		"internal/log/move.go",
		"was.Is(storage.IsDelete) || was.Seq > f.cursor || was.Content",
		"was.Is(storage.IsDelete) || was.Content",
	},
	{
		"a move does not delete what has left the former window since the reader read it",
		"internal/log/move.go",
		"if !e.Visible(had.Seq) || e.Is(storage.IsDelete) && e.Seq <= f.cursor {",
		"if !e.Visible(had.Seq) || e.Is(storage.IsDelete) {",
	},
	{
		"a reader has a part of a move at an id",
		"internal/log/walk.go",
		"return w.purpose == verifying || w.purpose == releasing || w.purpose == moving",
		"return w.purpose == verifying || w.purpose == releasing",
	},
	{
		"what was in a window for a moment is not deleted",
		"internal/views/window.go",
		"\t\treturn still\n",
		"\t\treturn still || !slices.ContainsFunc(w.shown, func(r row) bool { return r.key() == key })\n",
	},
	{
		"what was not in a window for a moment is not sent again",
		"internal/views/window.go",
		"known && !changed && !w.returned(r)",
		"known && !changed",
	},
	{
		"a window accepts positions from before it was made",
		"internal/log/window.go",
		"\tp.Begin(s, epoch, s.v.Revision)",
		"\tp.Begin(s, epoch, 0)",
	},
	{
		"a window resumes positions of other replicas where deletes have no revision",
		"internal/log/window.go",
		"p.w.next.Horizon, p.w.next.Run = math.MaxUint64, ",
		"p.w.next.Horizon, p.w.next.Run = math.MaxUint64&1, ",
	},
	{
		"a window resumes at a revision that two states have",
		"internal/views/sorted.go",
		"\t\tif t.unordered && wrote {",
		"\t\tif t.unordered && wrote && false {",
	},
	{
		"a resource that enters a window has the place of its own revision",
		"internal/log/window.go",
		"\tto, frame := p.appendAt(revision, k, w.framing.Size(&r,",
		"\tto, frame := p.appendAt(r.Revision, k, w.framing.Size(&r,",
	},
	{
		"what comes before a window does not move it",
		"internal/views/window.go",
		"\tcase !w.reaches(old) && !w.reaches(now):",
		"\tcase !w.reaches(old) && !w.reaches(now) || w.precedes(old) && now == nil:",
	},
	{
		"a change of a resource in a window passes by",
		"internal/views/sorted.go",
		"shows(key string) bool { return t.shown[key] > 0 }",
		"shows(key string) bool { return false }",
	},
	{
		"the total of a window that nothing touches stays",
		"internal/views/sorted.go",
		"\tif !t.resized && !moved {",
		"\tif !moved {",
	},
	{
		"the first window that a change concerns is not told",
		"internal/views/sorted.go",
		"w.Offset > from-t.most })",
		"w.Offset > from })",
	},
	{
		"the first window after a place that a change concerns is not told",
		"internal/views/sorted.go",
		"t.placeAt(from-t.most), old",
		"t.placeAt(from), old",
	},
	{
		"a window that has moved is not told of changes where it was not before",
		"internal/views/window.go",
		"\t\tw.of.order.show(came.key(), 1)\n",
		"\t\tw.of.order.show(came.key(), 0)\n",
	},
	{
		"a window that has lost a resource takes it for one that another window shows",
		"internal/views/window.go",
		"\tw.of.order.show(r.key(), -1)\n}\n\n// first",
		"\tw.of.order.show(r.key(), -2)\n}\n\n// first",
	},
	{
		"a change of what an order sorts by passes by",
		"internal/view/internal/document/unchanged.go",
		"\t\tcase len(child.ends) > 0:\n",
		"\t\tcase len(child.ends) > 1:\n",
	},
	{
		"a reader comes back to a window under other rules",
		"internal/view/definition.go",
		"\td.appendGrants(part, count)\n\treturn out",
		"\tif len(d.order) == 0 {\n\t\td.appendGrants(part, count)\n\t}\n\treturn out",
	},
	{
		"numbers are compared by as many digits as a float has",
		"internal/order/sortkey.go",
		"for i := 0; i < d.N; i += 2 {",
		"for i := 0; i < min(d.N, 14); i += 2 {",
	},
}

// stalls are faults with which readers of a view wait for what is made for others.
var stalls = []mutant{
	{
		"a view is made again for an older position",
		"internal/views/feeder.go",
		"\tf.buildSuspended()\n\tswitch {",
		"\tf.buildSuspended()\n\tfor e := range f.members {\n\t\tif e.declared == nil && e.wanted.Load() < e.low {\n" +
			"\t\t\tf.remove(e)\n\t\t\tf.views.build(e)\n\t\t}\n\t}\n\tswitch {",
	},
}

// miscounts are faults that TestCountsAgainstTheModel must find.
var miscounts = []mutant{
	{
		"a count accepts positions from before it was made",
		"internal/log/derived.go",
		"\tw.next.Horizon, w.next.HorizonAge = derivedRevision(s.v), s.v.Committed\n",
		"",
	},
	{
		"the deletes of a watch without revisions of deletes have revisions in a count",
		"internal/log/derived.go",
		"return strings.HasPrefix(of.Epoch, stream.UnnumberedEpoch)",
		"return strings.HasPrefix(of.Epoch, stream.UnnumberedEpoch+stream.UnnumberedEpoch)",
	},
	{
		"a count goes on with the groups of another generation",
		"internal/views/counts.go",
		"return c.begun && !c.stale && c.primed == newest.Generation() && newest.Forgotten() <= c.seq",
		"return c.begun && !c.stale && newest.Forgotten() <= c.seq",
	},
	{
		"the sum of a group keeps what has left it",
		"internal/views/tally.go",
		"\t\ts.sum.Sub(&s.sum, units)\n",
		"",
	},
	{
		"a number that does not occur any more stays the least",
		"internal/views/tally.go",
		"\t\ts.least.clean(s.all)\n",
		"",
	},
	{
		"the former value of a resource stays in its group",
		"internal/views/counts.go",
		"\tif before != nil {\n",
		"\tif before != nil && e.Deleted() {\n",
	},
}

var all = flag.Bool("all", false, "build all mutants, and not only the fourth that is due today; take all seeds, and not only a fifth")

var (
	seedCount = flag.Uint64("seeds", 0, "how many seeds the models take; 0: those that are due today")
	firstSeed = flag.Uint64("first", 1000, "the first of -seeds")
)

// seeds returns the seeds below n that are due today, or with -short those below short, or what -seeds says.
func seeds(n, short uint64) (due []uint64) {
	if *seedCount > 0 {
		for seed := range *seedCount {
			due = append(due, *firstSeed+seed)
		}
		return due
	}
	if testing.Short() {
		n = short
	}
	for seed := range n {
		if *all || testing.Short() || seed%5 == uint64(time.Now().YearDay())%5 {
			due = append(due, seed)
		}
	}
	return due
}

// TestMutants builds this package with a fourth of the faults each day, or with all, and
// checks that the model finds them.
func TestMutants(t *testing.T) { testMutants(t, mutants, "^TestAgainstTheModel$", "broke ") }

// TestWindowMutants does so with faults of windows.
func TestWindowMutants(t *testing.T) {
	testMutants(t, windowMutants, "^TestWindowsAgainstTheModel$", "want ")
}

// TestStalls does so with faults that keep changes from readers for a while.
func TestStalls(t *testing.T) {
	testMutants(t, stalls, "^TestAgainstTheModel$", "broke Fresh: while others came")
}

// TestLeaks does so with faults that show what is hidden.
func TestLeaks(t *testing.T) { testMutants(t, leaks, "^TestConfidential", "broke Confidential") }

// TestWindowLeaks does so with faults that show how much is hidden.
func TestWindowLeaks(t *testing.T) {
	testMutants(t, windowLeaks, "^TestConfidentialWindows$", "the window says ")
}

// TestMiscounts does so with faults of counts.
func TestMiscounts(t *testing.T) {
	testMutants(t, miscounts, "^TestCountsAgainstTheModel$", "broke ")
}

func testMutants(t *testing.T, mutants []mutant, test, finding string) {
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			text, err := m.apply(module)
			switch {
			case err != nil:
				t.Fatal(err)
			case testing.Short():
				t.Skip("it is compiled without the race detector, and so is all that it needs")
			case !*all && i%4 != time.Now().YearDay()%4:
				t.Skip("it is due on another day: see -all")
			}
			m.find(t, module, text, test, finding)
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

// find runs a test with the fault, which must report a finding.
func (m *mutant) find(t *testing.T, module, text, test, finding string) {
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
	// The first seed that fails may fail with another finding, so all are played, until it is there.
	run := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run="+test, "-all")
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run.Stderr = run.Stdout
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer run.Wait()
	defer run.Process.Kill()
	var failed []byte
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, finding) {
			return
		}
		if !strings.HasPrefix(line, "===") && len(failed) < 2000 {
			failed = append(failed, line...)
		}
		if err != nil {
			t.Fatalf("the model does not find it:\n%s", failed)
		}
	}
}
