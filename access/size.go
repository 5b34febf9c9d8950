package access

// Size returns about how many bytes of memory a principal takes, and never much less: claims
// take up to thirty times their text.
func (p *Principal) Size() int {
	n := 512 + len(p.Issuer) + len(p.Name)
	for _, g := range p.Groups {
		n += 16 + len(g)
	}
	return n + sizeOf(p.Claims)
}

// What maps and the boxes of values take: a map has room for eight members at least once it
// has one, and doubles.
const (
	mapBytes   = 48
	groupBytes = 280 // of eight members
	boxBytes   = 24
)

// sizeOf returns about how many bytes a claim takes besides its place in a list or a map.
func sizeOf(claim any) int {
	switch c := claim.(type) {
	case string:
		return boxBytes + len(c)
	case []any:
		n := boxBytes + 24*len(c)
		for _, v := range c {
			n += sizeOf(v)
		}
		return n
	case map[string]any:
		n := mapBytes
		if len(c) > 0 {
			n += groupBytes * (1 + len(c)/4)
		}
		for name, v := range c {
			n += len(name) + sizeOf(v)
		}
		return n
	}
	return boxBytes
}
