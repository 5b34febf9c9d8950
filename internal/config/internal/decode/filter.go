package decode

import (
	"unicode"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/view"
)

// StandAlone reports whether the parameters of a filter are string literals of their own,
// and not in or beside one that the filter has: then it means the same with either kind of
// quotation marks. definition is that of p, where the values are in double ones; nil: p
// has a mistake.
func StandAlone(filter TemplateText, values map[string]string, p view.Params, definition *view.Definition) bool {
	if len(filter) == 0 {
		return true
	}
	single := map[string]string{}
	for name, value := range values {
		literal, _ := CEL(value)
		single[name] = "'" + literal[1:len(literal)-1] + "'"
	}
	for i, part := range filter {
		if i > 0 && part.Param != "" && endsInWord(filter[i-1].Literal) {
			return false // r"…" is another kind of literal
		}
	}
	p.Filter = filter.Render(single)
	other, err := view.Parse(p)
	if definition == nil {
		return err != nil
	}
	return err == nil && other.ID() == definition.ID()
}

func endsInWord(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}
