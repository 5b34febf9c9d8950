# Makes a Markdown table of the rows that tests of scripted faults log (see scripted.go).
BEGIN {
	FS = " *[|] *"
	add("source|fault|outcome")
}
/scripted [|]/ { add($2 "|" $3 "|" $4) }
END {
	for (r = 1; r <= rows; r++) {
		print line(table[r], " ")
		if (r == 1) print line("||", "-")
	}
	if (rows == 1) exit 1
}

function add(row,   cells, n, i) {
	table[++rows] = row
	n = split(row, cells, "|")
	for (i = 1; i <= n; i++) if (length(cells[i]) > width[i]) width[i] = length(cells[i])
}

function line(row, fill,   cells, n, i, out, pad) {
	n = split(row, cells, "|")
	out = "|"
	for (i = 1; i <= n; i++) {
		pad = sprintf("%" (width[i] - length(cells[i])) "s", "")
		gsub(" ", fill, pad)
		out = out " " cells[i] pad " |"
	}
	return out
}
