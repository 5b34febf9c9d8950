# Makes a Markdown table of the rows that tests of faults log (see row.go).
BEGIN {
	FS = " *[|] *"
	add("source|fault|noticed|stale|recovered|snapshots|events|spurious")
}
/: reliability [|]/ {
	row = $2
	for (i = 3; i <= 9; i++) row = row "|" $i
	add(row)
}
END {
	for (r = 1; r <= rows; r++) {
		print line(table[r], " ")
		if (r == 1) print line("|||||||", "-")
	}
	if (rows == 1) exit 1
}

function add(row,   cells, n, i) {
	table[++rows] = row
	n = split(row, cells, "|")
	for (i = 1; i <= n; i++) if (length(cells[i]) > width[i]) width[i] = length(cells[i])
}

# Names stand left, numbers right.
function line(row, fill,   cells, n, i, out, pad) {
	n = split(row, cells, "|")
	out = "|"
	for (i = 1; i <= n; i++) {
		pad = sprintf("%" (width[i] - length(cells[i])) "s", "")
		gsub(" ", fill, pad)
		if (fill == "-") out = out (i < 3 ? " " pad " |" : " " substr(pad, 2) ": |")
		else out = out (i < 3 ? " " cells[i] pad " |" : " " pad cells[i] " |")
	}
	return out
}
