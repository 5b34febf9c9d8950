package files

import (
	"strings"

	"github.com/goccy/go-yaml/token"
)

// withContent returns the tokens, with content behind each tag that has none.
// Without it the parser takes null, or what follows on the next line.
func withContent(tokens token.Tokens) token.Tokens {
	var out token.Tokens
	flow, copied := 0, 0
	for i := 0; i < len(tokens); i++ {
		flow += nesting(tokens[i])
		if tokens[i].Type != token.TagType {
			continue
		}
		end := afterAnchor(tokens, i+1)
		if hasContent(tokens, i, end, flow > 0) {
			continue
		}
		out = append(append(out, tokens[copied:end]...), nothing(tokens[i]))
		i, copied = end-1, end
	}
	if copied == 0 {
		return tokens
	}
	return append(out, tokens[copied:]...)
}

func nesting(t *token.Token) int {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		return 1
	case token.SequenceEndType, token.MappingEndType:
		return -1
	}
	return 0
}

// afterAnchor returns the index behind an anchor, if one is at this index.
func afterAnchor(tokens token.Tokens, i int) int {
	if i+1 < len(tokens) && tokens[i].Type == token.AnchorType {
		return i + 2
	}
	return i
}

// hasContent reports whether the token at end, or the first one behind the
// comments there, is what the tag at an index stands before.
func hasContent(tokens token.Tokens, tag, end int, inFlow bool) bool {
	for end < len(tokens) && tokens[end].Type == token.CommentType {
		end++
	}
	if end == len(tokens) {
		return false
	}
	next := tokens[end]
	switch next.Type {
	case token.CollectEntryType, token.SequenceEndType, token.MappingEndType, token.MappingValueType,
		token.DocumentHeaderType, token.DocumentEndType:
		return false
	}
	if inFlow || next.Position.Line == tokens[tag].Position.Line {
		return true
	}
	indent, ofKey := indentation(tokens, tag)
	if ofKey && next.Type == token.SequenceEntryType {
		return next.Position.Column >= indent
	}
	return next.Position.Column > indent
}

// indentation returns the column of the key or of the dash whose value the tag
// at an index begins, or 0.
func indentation(tokens token.Tokens, tag int) (column int, ofKey bool) {
	before := tag - 1
	if before > 0 && tokens[before-1].Type == token.AnchorType {
		before -= 2
	}
	for before >= 0 && tokens[before].Type == token.CommentType {
		before--
	}
	if before < 0 {
		return 0, false
	}
	at := tokens[before].Position
	switch tokens[before].Type {
	case token.SequenceEntryType, token.MappingKeyType:
		return at.Column, false
	case token.MappingValueType:
		if before > 0 && tokens[before-1].Position.Line == at.Line {
			at = tokens[before-1].Position
		}
		return at.Column, true
	}
	return 0, false
}

// nothing is an empty text behind a tag, or null if the tag says so.
func nothing(tag *token.Token) *token.Token {
	at := *tag.Position
	if tagName(tag.Value) == "!!null" {
		return token.New("null", "null", &at)
	}
	return token.SingleQuote("", "''", &at)
}

// tagName returns the short form of a tag.
func tagName(tag string) string {
	if name, ok := strings.CutPrefix(tag, "!<tag:yaml.org,2002:"); ok && strings.HasSuffix(name, ">") {
		return "!!" + name[:len(name)-1]
	}
	return tag
}

// withoutKey returns the first colon without a key before it, which the parser
// leaves out together with its value.
func withoutKey(tokens token.Tokens) *token.Token {
	var before *token.Token
	explicit := map[int]bool{} // columns with a ? that still wants its colon
	flow := 0
	for _, t := range tokens {
		flow += nesting(t)
		column := t.Position.Column
		switch {
		case t.Type == token.CommentType:
			continue
		case t.Type == token.MappingKeyType:
			explicit[column] = true
		case t.Type != token.MappingValueType:
		case flow > 0 && before != nil && opensEntry(before):
			return t
		case flow <= 0 && (before == nil || before.Position.Line < t.Position.Line):
			if !explicit[column] {
				return t
			}
			explicit[column] = false
		}
		before = t
	}
	return nil
}

func opensEntry(t *token.Token) bool {
	return t.Type == token.CollectEntryType || nesting(t) > 0
}
