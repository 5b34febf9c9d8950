package predicate

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// meterName is the name by which a program finds the meter. No expression can have it.
const meterName = "#meter"

// metered makes a program count what it reads and makes, each time. What a function does with
// its arguments grows no faster than these, except for the searches in texts, which are
// counted apart.
//
// It also has constant patterns compiled once. cel.OptOptimize, which would do that too, is
// left out: it looks numbers up in lists of constants by another equality than that of the
// language.
var metered = cel.CustomDecoratorV2(func(n interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch n := n.(type) {
	case *reading:
		return n, nil // it is here once for each name that leads on
	case interpreter.InterpretableAttribute:
		return &reading{n}, nil
	case interpreter.InterpretableConstructor:
		return &making{n}, nil
	case interpreter.InterpretableCall:
		return meteredCall(n)
	}
	return n, nil
})

func meteredCall(n interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	switch n.Function() {
	case overloads.Contains:
		return &containing{n}, nil
	case overloads.Matches:
		return newMatches(n)
	case operators.Add, overloads.TypeConvertString, overloads.TypeConvertBytes:
		return &making{n}, nil
	}
	return n, nil
}

// meterOf returns the meter of an evaluation.
func meterOf(f *interpreter.ExecutionFrame) *meter {
	found, _ := f.ResolveName(meterName)
	m, _ := found.(*meter)
	return m
}

// end ends an evaluation that has done too much, whatever is around the expression at hand.
func end() {
	panic(interpreter.EvalCancelledError{Message: ErrCost.Error(), Cause: interpreter.CostLimitExceeded})
}

// reading is something that is read in a resource or is given, or the element of a macro.
type reading struct {
	interpreter.InterpretableAttribute
}

// Exec implements interpreter.InterpretableV2.
func (r *reading) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v := r.InterpretableAttribute.Exec(f)
	if !meterOf(f).read(v) {
		end()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (r *reading) Eval(a interpreter.Activation) ref.Val { return r.Exec(interpreter.AsFrame(a)) }

// making makes a text, a list or a map. The parts of lists and maps have been read.
type making struct{ interpreter.InterpretableV2 }

// Exec implements interpreter.InterpretableV2.
func (n *making) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v, units := n.InterpretableV2.Exec(f), 1
	switch v := v.(type) {
	case types.String:
		units += len(v) / searchedBytes
	case types.Bytes:
		units += len(v) / searchedBytes
	default:
		if c, ok := n.InterpretableV2.(interpreter.InterpretableConstructor); ok {
			units += len(c.InitVals())
		}
	}
	if !meterOf(f).take(units) {
		end()
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (n *making) Eval(a interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(a)) }

// containing is x.contains(y).
type containing struct{ interpreter.InterpretableCall }

// Exec implements interpreter.InterpretableV2.
func (n *containing) Exec(f *interpreter.ExecutionFrame) ref.Val {
	text, part := n.Args()[0].Exec(f), n.Args()[1].Exec(f)
	for _, v := range []ref.Val{text, part} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	t, ok := text.(types.String)
	p, alsoOK := part.(types.String)
	if !ok || !alsoOK {
		return types.NoSuchOverloadErr()
	}
	if !meterOf(f).take(searching(len(t), len(p))) {
		end()
	}
	return types.Bool(strings.Contains(string(t), string(p)))
}

// Eval implements interpreter.Interpretable.
func (n *containing) Eval(a interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(a)) }

// matches is x.matches(pattern).
type matches struct {
	interpreter.InterpretableCall
	pattern      *regexp.Regexp
	instructions int
}

func newMatches(n interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	constant, ok := n.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return n, nil // such an expression was refused
	}
	text, ok := constant.Value().(types.String)
	if !ok {
		return n, nil
	}
	pattern, err := regexp.Compile(string(text))
	if err != nil {
		return nil, err
	}
	size, err := instructions(string(text))
	return &matches{n, pattern, size}, err
}

// Exec implements interpreter.InterpretableV2.
func (n *matches) Exec(f *interpreter.ExecutionFrame) ref.Val {
	v := n.Args()[0].Exec(f)
	if types.IsUnknownOrError(v) {
		return v
	}
	text, ok := v.(types.String)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	if !meterOf(f).take(matching(len(text), n.instructions)) {
		end()
	}
	return types.Bool(n.pattern.MatchString(string(text)))
}

// Eval implements interpreter.Interpretable.
func (n *matches) Eval(a interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(a)) }
