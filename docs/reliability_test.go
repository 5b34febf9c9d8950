package docs_test

import (
	"slices"
	"strings"
	"testing"
)

// TestReliabilityTable: the table has every source and every fault that each of
// them must withstand, and no spurious event.
func TestReliabilityTable(t *testing.T) {
	network := []string{"cut", "cut and refused", "stall", "delay", "trickle", "half-close to source", "half-close to upstream"}
	server := append(slices.Clone(network), "kill", "restart", "wipe")
	faults := map[string][]string{}
	for _, row := range rowsOf(pages(t)["reliability.md"], "spurious") {
		if row["spurious"] != "0" {
			t.Errorf("%s, %s: %s spurious events, want none", row["source"], row["fault"], row["spurious"])
		}
		faults[row["source"]] = append(faults[row["source"]], row["fault"])
	}
	for source, want := range map[string][]string{
		"grpc": server, "etcd": server, "kubernetes": server, "nats": server, "gateway": server, "postgres": server, "postgres, slot": append(slices.Clone(server), "slot dropped"),
		"consul": append(slices.Clone(network), "wipe"), "consul 1.22.3": append(slices.Clone(network), "kill", "restart"),
		"consul kv 1.22.3": append(slices.Clone(network), "kill", "restart", "restore of the snapshot"), "consul health 1.22.3": append(slices.Clone(network), "kill", "restart"),
		"files": {"directory moved away", "half-written file"},
	} {
		for _, fault := range want {
			if !slices.Contains(faults[source], fault) {
				t.Errorf("reliability.md has no row for %s, %s: run `WATCHTIDE_FULL_CONSUL=1 make reliability`", source, fault)
			}
		}
	}
}

// rowsOf reads the tables that have a column of that name, each row by the
// headings.
func rowsOf(page, column string) (rows []map[string]string) {
	var head []string
	for line := range strings.Lines(page) {
		cells := cellsOf(line)
		switch {
		case cells == nil:
			head = nil
		case head == nil:
			head = cells
		case slices.Contains(head, column) && !strings.HasPrefix(cells[0], "-"):
			row := map[string]string{}
			for i, cell := range cells[:min(len(cells), len(head))] {
				row[head[i]] = cell
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// cellsOf returns the cells of a line of a table, nil for any other line.
func cellsOf(line string) (cells []string) {
	line, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !ok {
		return nil
	}
	for cell := range strings.SplitSeq(strings.TrimSuffix(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}
