package decode

import "strings"

// WholeNames reports whether the parameters of an order are whole names of its paths, and not parts of one.
func WholeNames(order TemplateText) bool {
	var before byte // the last one of the text before; 0: there is none
	named := false  // a parameter ends the text before
	for _, part := range order {
		switch {
		case part.Param != "":
			if named || before != 0 && !strings.ContainsRune("-,. ", rune(before)) {
				return false
			}
			named = true
		case part.Literal != "":
			if named && !strings.ContainsRune(",. ", rune(part.Literal[0])) {
				return false
			}
			named, before = false, part.Literal[len(part.Literal)-1]
		}
	}
	return true
}
