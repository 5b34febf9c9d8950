package decode

// Text is a kind of text.
type Text struct {
	Want  string                        // description, as it follows "want"
	Valid func(string) bool             // nil: any text is valid
	Use   func(*Decoder, Scalar) string // converts the text for the field; nil: the text itself

	Parameter *Rule             // how a parameter of a template is written in the text; nil: it may have none
	Fits      func(string) bool // reports whether a text with parameters filled in is valid; nil: Valid does
}

// Allows reports whether a text in which parameters have been filled in is valid.
func (k Text) Allows(text string) bool {
	if k.Fits != nil {
		return k.Fits(text)
	}
	return k.Valid == nil || k.Valid(text)
}
