package view

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// selector is a label selector: requirements in a fixed order, all of which hold.
type selector []requirement

// requirement is one of them, with its canonical text.
type requirement struct {
	labels.Requirement
	text string
	// in are the values one of which the label has; nil if that is not what is required.
	in []string
}

// parseSelector reads a selector in the syntax of Kubernetes.
func parseSelector(text string) (selector, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	parsed, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, explainSelector(text, err)
	}
	var s selector
	for _, p := range parsed {
		r, err := canonical(p)
		if err != nil {
			return nil, err
		}
		s = append(s, r)
	}
	slices.SortFunc(s, func(a, b requirement) int { return cmp.Compare(a.text, b.text) })
	s = slices.CompactFunc(s, func(a, b requirement) bool { return a.text == b.text })
	if len(s) > MaxRequirements {
		return nil, fmt.Errorf("there are %d requirements, and at most %d are allowed", len(s), MaxRequirements)
	}
	return s, nil
}

// canonical gives a requirement the one form of those that mean the same: a=x for one
// value, a in (x,y) for several, in order and each once.
func canonical(p labels.Requirement) (requirement, error) {
	r := requirement{Requirement: p}
	values := slices.Sorted(slices.Values(p.ValuesUnsorted()))
	switch key := p.Key(); p.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		r.in = values
		r.text = fmt.Sprintf("%s in (%s)", key, strings.Join(values, ","))
		if len(values) == 1 {
			r.text = key + "=" + values[0]
		}
	case selection.NotEquals, selection.NotIn:
		r.text = fmt.Sprintf("%s notin (%s)", key, strings.Join(values, ","))
		if len(values) == 1 {
			r.text = key + "!=" + values[0]
		}
	case selection.Exists:
		r.text = key
	case selection.DoesNotExist:
		r.text = "!" + key
	case selection.GreaterThan, selection.LessThan:
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return r, fmt.Errorf("%s is compared with %q, want an integer", key, values[0])
		}
		r.text = key + map[selection.Operator]string{selection.GreaterThan: ">", selection.LessThan: "<"}[p.Operator()] + strconv.FormatInt(n, 10)
	default:
		return r, fmt.Errorf("unknown operator %s", p.Operator())
	}
	return r, nil
}

// matches reports whether all requirements hold.
func (s selector) matches(of labels.Set) bool {
	for i := range s {
		if !s[i].Matches(of) {
			return false
		}
	}
	return true
}

// String returns the canonical text.
func (s selector) String() string {
	texts := make([]string, len(s))
	for i := range s {
		texts[i] = s[i].text
	}
	return strings.Join(texts, ",")
}

// explainSelector says in which requirement a mistake is, and what would be right.
func explainSelector(text string, err error) error {
	at, wrong := firstWrong(text)
	m := &document.Mistake{Offset: at, Problem: tersely(err)}
	if wrong == "" {
		return m
	}
	if _, err := labels.ParseToRequirements(wrong); err != nil {
		m.Problem = tersely(err)
	}
	switch {
	case strings.ContainsAny(wrong, `"'`):
		m.Advice = "names and values stand without quotes"
	case strings.Contains(wrong, "&"):
		m.Advice = "requirements have commas between them: a=x,b=y"
	case strings.Contains(wrong, "|"):
		m.Advice = "one of several values is a in (x,y)"
	case strings.Contains(wrong, ":"):
		m.Advice = "did you mean " + strings.Replace(wrong, ":", "=", 1) + "?"
	case strings.Contains(wrong, "["):
		m.Advice = "values are in parentheses: a in (x,y)"
	default:
		m.Advice = "want a=x, a!=x, a in (x,y), a notin (x,y), a or !a, with commas between them"
	}
	return m
}

// firstWrong returns the first requirement that is wrong by itself, and where it begins;
// "" if none is.
func firstWrong(text string) (at int, wrong string) {
	start, depth := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) {
			switch text[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
			if text[i] != ',' || depth > 0 {
				continue
			}
		}
		one := text[start:i]
		trimmed := strings.TrimSpace(one)
		if _, err := labels.ParseToRequirements(one); err != nil || trimmed == "" {
			return start + strings.Index(one, trimmed), trimmed
		}
		start = i + 1
	}
	return 0, ""
}

// verbose is what an error of the parser says besides what is wrong.
var verbose = regexp.MustCompile(`^unable to parse requirement: |^[^ ]*: Invalid value: | \(e\.g\. .*|\n.*`)

func tersely(err error) string {
	return verbose.ReplaceAllString(verbose.ReplaceAllString(err.Error(), ""), "")
}
