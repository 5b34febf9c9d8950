package view

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/watchtide/watchtide/internal/view/internal/document"
	"github.com/watchtide/watchtide/internal/view/internal/predicate"
)

// Error is a parameter of a definition that cannot be meant.
type Error struct {
	Parameter string // prefix, keys, labels, filter, fields, order, limit, offset, after, labels_at, by or sum
	// Offset is where the mistake begins, in bytes; Line and Column say the same, in
	// code points, both from 1.
	Offset, Line, Column int
	// Problem says what is wrong; Advice what would be right, or is empty.
	Problem, Advice string
	// Needs is the parameter that has to be given too; empty: none. It is the advice, under the name that it has
	// where the parameters come from.
	Needs string
}

// Error returns a sentence with the parameter, the place, the problem and the advice.
func (e *Error) Error() string {
	place := fmt.Sprintf("%s, column %d", e.Parameter, e.Column)
	if e.Line > 1 {
		place = fmt.Sprintf("%s, line %d, column %d", e.Parameter, e.Line, e.Column)
	}
	m := document.Mistake{Problem: e.Problem, Advice: e.Advice}
	if e.Needs != "" {
		m.Advice = "want " + e.Needs + " too"
	}
	return place + ": " + m.Error()
}

// needOrder makes an Error of a parameter of a window without its order.
func needOrder(parameter, what string) *Error {
	return &Error{Parameter: parameter, Line: 1, Column: 1, Problem: what + " belongs to an order", Needs: "order"}
}

// maxQuoted is how many bytes of a value errors quote.
const maxQuoted = 40

// Quoted returns a value as errors quote it; one that is long is cut, with a mark.
func Quoted(value string) string {
	if len(value) <= maxQuoted {
		return strconv.Quote(value)
	}
	return strconv.Quote(value[:maxQuoted]) + "…"
}

// refuse makes an Error of what is wrong with a parameter.
func refuse(parameter, text string, err error) *Error {
	e := &Error{Parameter: parameter, Line: 1, Column: 1, Problem: err.Error()}
	var m *document.Mistake
	if !errors.As(err, &m) {
		return e
	}
	before := text[:min(m.Offset, len(text))]
	e.Offset, e.Problem, e.Advice = len(before), m.Problem, m.Advice
	e.Line = 1 + strings.Count(before, "\n")
	e.Column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return e
}

// Failure is why it cannot be told whether a resource matches, so that it does not.
type Failure int

// The failures.
const (
	// NoResult: something that the filter needs is absent or of another kind, or the
	// filter is neither true nor false.
	NoResult Failure = iota
	// NotJSON: the filter needs the value, and that is not JSON.
	NotJSON
	// Repeated: an object has a member twice that the filter or the selector needs.
	Repeated
	// TooCostly: the evaluation was given up at FilterCostLimit or FilterWorkLimit.
	TooCostly

	// Failures is how many there are.
	Failures = int(iota)
)

var failures = [Failures]string{
	NoResult: "the filter has no result for this value", NotJSON: "the value is not JSON",
	Repeated: "an object of the value has a member twice", TooCostly: "the filter costs too much for this value",
}

// Error returns what the failure is.
func (f Failure) Error() string { return failures[f] }

// failure translates what an evaluation returned.
func failure(err error) Failure {
	if errors.Is(err, predicate.ErrCost) {
		return TooCostly
	}
	return NoResult
}
