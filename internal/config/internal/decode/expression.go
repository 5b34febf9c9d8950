package decode

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// samples are the characters that a sample is made of, and that a name can have, those
// first that are allowed almost everywhere.
const samples = LowerCase + Digits + UpperCase + "-_."

const wantExpression = "want a regular expression (RE2), such as [a-z]+"

// ErrHidden is what is wrong with any expression whose text must not be shown.
var ErrHidden = errors.New(wantExpression)

// ParseExpression reads the regular expression of a parameter. It returns one that matches
// the same and has no groups, and a short text that it matches.
func ParseExpression(text string) (expression, sample string, err error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return "", "", explain(text, err)
	}
	if looksAround(parsed) {
		return "", "", errors.New(`leave out ^, $ and \b; the whole value is matched anyway`)
	}
	expression = "(?:" + withoutGroups(parsed).String() + ")"
	whole, err := regexp.Compile(`\A` + expression + `\z`)
	if err != nil {
		return "", "", explain(text, err)
	}
	for _, once := range []bool{false, true} {
		sample, ok := sampleOf(parsed, once)
		if ok && sample != "" && whole.MatchString(sample) {
			return expression, sample, nil
		}
	}
	return "", "", errors.New("it matches nothing that a name can have: want letters, digits, '.', '_' and '-'")
}

// explain says what is wrong with an expression.
func explain(text string, err error) error {
	var mistake *syntax.Error
	switch {
	case !errors.As(err, &mistake):
		return ErrHidden
	case mistake.Expr == "" || mistake.Expr == text:
		return errors.New(mistake.Code.String() + "; " + wantExpression)
	}
	return errors.New(mistake.Code.String() + " at " + mistake.Expr + "; " + wantExpression)
}

// looksAround reports whether an expression matches places between characters: ^, $ or \b.
func looksAround(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if looksAround(sub) {
			return true
		}
	}
	return false
}

// withoutGroups returns an expression that matches the same and captures nothing. It
// changes re.
func withoutGroups(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	for i := range re.Sub {
		re.Sub[i] = withoutGroups(re.Sub[i])
	}
	return re
}

// sampleOf returns a short text that an expression matches, of characters that a name can
// have. once: what may be repeated or left out is there once.
func sampleOf(re *syntax.Regexp, once bool) (string, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return "", true
	case syntax.OpLiteral:
		text := string(re.Rune)
		return text, strings.Trim(text, samples) == ""
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return samples[:1], true
	case syntax.OpCharClass:
		at := strings.IndexFunc(samples, func(r rune) bool { return inClass(re.Rune, r) })
		if at < 0 {
			return "", false
		}
		return samples[at : at+1], true
	case syntax.OpStar, syntax.OpQuest, syntax.OpPlus, syntax.OpRepeat:
		return repeated(re, once)
	case syntax.OpConcat:
		return concatenated(re, once)
	case syntax.OpAlternate:
		return shortest(re, once)
	}
	return "", false
}

func inClass(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

func repeated(re *syntax.Regexp, once bool) (string, bool) {
	times := map[syntax.Op]int{syntax.OpPlus: 1, syntax.OpRepeat: re.Min}[re.Op]
	if once {
		times = max(times, 1)
	}
	if times == 0 {
		return "", true
	}
	sample, ok := sampleOf(re.Sub[0], once)
	return strings.Repeat(sample, times), ok
}

func concatenated(re *syntax.Regexp, once bool) (string, bool) {
	var whole string
	for _, sub := range re.Sub {
		sample, ok := sampleOf(sub, once)
		if !ok {
			return "", false
		}
		whole += sample
	}
	return whole, true
}

// shortest returns the shortest sample of several alternatives; once: that is not empty.
func shortest(re *syntax.Regexp, once bool) (best string, found bool) {
	for _, sub := range re.Sub {
		sample, ok := sampleOf(sub, once)
		if ok && (!found || len(sample) < len(best) && (sample != "" || !once) || best == "" && once) {
			best, found = sample, true
		}
	}
	return best, found
}
