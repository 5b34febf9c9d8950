# Makes a Markdown table of what the benchmarks of sources print: a row for each
# package, with the medians of its runs.
BEGIN {
	columns = split("resources|prime-s|raw-prime-s|prime/raw|peak-MB|raw-peak-MB|changes/s|raw-changes/s|added-p50-µs|added-p99-µs", units, "|")
	split("%d|%.2f|%.2f|%.2f|%.0f|%.0f|%.0f|%.0f|%.0f|%.0f", formats, "|")
	header = "source|resources|prime s|raw prime s|ratio|peak MB|raw peak MB|changes/s|raw changes/s|added p50 µs|added p99 µs"
}
/^pkg: / {
	source = $2
	sub(/.*\//, "", source)
	sub(/source$/, "", source)
}
/^BenchmarkUpstream/ {
	if (!(source in runs)) order[++rows] = source
	runs[source]++
	for (i = 4; i <= NF; i += 2) seen[source, $i, runs[source]] = $(i - 1)
}
END {
	add(0, header)
	for (r = 1; r <= rows; r++) {
		row = order[r]
		for (c = 1; c <= columns; c++) row = row "|" sprintf(formats[c], median(order[r], units[c]))
		add(r, row)
	}
	for (r = 0; r <= rows; r++) {
		print line(table[r], " ")
		if (r == 0) print line("||||||||||", "-")
	}
	if (rows == 0) exit 1
}

function median(source, unit,   n, i, j, v, t) {
	n = runs[source]
	for (i = 1; i <= n; i++) v[i] = seen[source, unit, i] + 0
	for (i = 1; i <= n; i++)
		for (j = i + 1; j <= n; j++)
			if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
	return v[int((n + 1) / 2)]
}

function add(r, row,   cells, n, i) {
	table[r] = row
	n = split(row, cells, "|")
	for (i = 1; i <= n; i++) if (chars(cells[i]) > width[i]) width[i] = chars(cells[i])
}

# Names stand left, numbers right.
function line(row, fill,   cells, n, i, out, pad) {
	n = split(row, cells, "|")
	out = "|"
	for (i = 1; i <= n; i++) {
		pad = sprintf("%" (width[i] - chars(cells[i])) "s", "")
		gsub(" ", fill, pad)
		if (fill == "-") out = out (i == 1 ? " " pad " |" : " " substr(pad, 2) ": |")
		else out = out (i == 1 ? " " cells[i] pad " |" : " " pad cells[i] " |")
	}
	return out
}

# The letter is two bytes to some implementations of awk.
function chars(text) {
	gsub(/µ/, "u", text)
	return length(text)
}
