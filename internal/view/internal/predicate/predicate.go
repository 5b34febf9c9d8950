// Package predicate decides whether a resource is wanted, by an expression in CEL
// (https://cel.dev) over
//
//	key       string               key of the resource
//	value     dyn                  its value; there is none if that is not JSON
//	labels    map(string, string)  its labels
//	revision  int                  its revision; the largest int if it is beyond that
//
// with the functions and macros of the language's standard, and none besides: they depend
// on nothing but the resource, and make nothing that is much larger than it.
package predicate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// Limits of expressions. The length of the text is the caller's to limit.
const (
	// MaxDepth is how deep an expression is nested, so that no recursion over it is deep.
	MaxDepth = 50
	// MaxNodes is the number of operands and operators, after macros are expanded.
	MaxNodes = 1000
	// MaxPattern is the number of instructions of a compiled regular expression.
	MaxPattern = 1000
	// MaxKey is the length of keys for which costs are estimated, in bytes.
	MaxKey = 4 << 10
	// MaxLabels is the number of labels for which costs are estimated.
	MaxLabels = 128
	// EstimateLimit is the estimated cost of evaluating an expression over the largest
	// value, in units of about 100 ns, above which it is refused.
	EstimateLimit = 100_000_000
	// CostLimit is the cost of the steps of macros at which an evaluation is given up, in
	// the same units: some 10 ms. A step costs what it costs at most for an element that
	// is not itself large: for simple ones this is 10,000 steps.
	CostLimit = 100_000
	// WorkLimit is the cost of what an evaluation reads and makes, and of its searches in
	// texts, at which it is given up, in the same units: some 100 ms at worst. It is counted
	// again for each value, from how large things are in it. For a regular expression of
	// twenty instructions this is a text of 200 KB.
	WorkLimit = 1_000_000
	// CheapLimit is the cost of an evaluation over the largest value up to which a filter is
	// cheap: some 1 ms.
	CheapLimit = 10_000
)

// Variables are the names that an expression can use.
func Variables() []string { return []string{"key", "labels", "revision", "value"} }

func isVariable(name string) bool {
	switch name {
	case "key", "labels", "revision", "value":
		return true
	}
	return false
}

// environment is made once: it takes a millisecond.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(append(language(registry),
		cel.Variable("key", cel.StringType),
		cel.Variable("value", cel.DynType),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("revision", cel.IntType),
	)...)
})

// language returns the options of every environment.
func language(registry types.Adapter) []cel.EnvOption {
	return []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{registry}),
		cel.ParserRecursionLimit(MaxDepth),
		cel.ParserErrorRecoveryLimit(2),
		cel.ExpressionNodeLimit(MaxNodes),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(),
		cel.CostEstimatorOptions(containsEstimate),
	}
}

// Predicate is a compiled expression.
//
// Static after Compile; it may be used by any number of goroutines.
type Predicate struct {
	matcher matcher     // nil: the program decides
	program cel.Program // nil: the matcher decides, and takes no steps
	macros  bool        // steps are taken, and the program ends after some
	cheap   bool        // see Cheap
	steps   int32       // how many steps an evaluation may take
	text    string
	usage   Usage
	terms   []Term
	prefix  string
}

// Compile checks an expression over values of at most maxValue bytes. An error is a
// *decode.Mistake.
func Compile(text string, maxValue int) (*Predicate, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	tree, err := check(env, text)
	if err != nil {
		return nil, err
	}
	canonical, err := format(tree.NativeRep())
	if err != nil {
		return nil, err
	}
	// What is evaluated is made from the canonical text alone, so that the same text
	// always means the same.
	tree, err = check(env, canonical)
	if err != nil {
		return nil, fmt.Errorf("the expression in its canonical form, %s: %w", canonical, err)
	}
	if again, err := format(tree.NativeRep()); err != nil || again != canonical {
		return nil, fmt.Errorf("the expression has no canonical form: it is %s and %s", canonical, again)
	}
	p := &Predicate{text: canonical, usage: usageOf(tree.NativeRep().Expr())}
	p.terms, p.prefix = termsOf(tree.NativeRep().Expr())
	return p, p.plan(env, tree, maxValue)
}

// plan makes the matcher or the program. What cel-go has against costs at run time, a count of them, takes
// time that grows with the square of the steps; so the steps are counted instead, each at
// what it can cost.
func (p *Predicate) plan(env *cel.Env, tree *cel.Ast, maxValue int) error {
	steps, rest, err := estimate(env, tree, sizes{value: uint64(maxValue), variable: isVariable})
	if err != nil {
		return err
	}
	if cost := min(steps, math.MaxInt64) + min(rest, math.MaxInt64); cost > EstimateLimit {
		return &document.Mistake{
			Problem: fmt.Sprintf("the filter could cost %d units for one value of %d bytes, and at most %d are allowed", cost, maxValue, EstimateLimit),
			Advice:  "compare fewer things, or smaller ones",
		}
	}
	p.macros = hasMacros(tree.NativeRep().Expr())
	p.matcher = matcherOf(tree.NativeRep().Expr())
	p.steps = int32(max(1, CostLimit/max(1, steps/uint64(maxValue))))
	p.cheap = p.most(tree.NativeRep().Expr(), maxValue) <= CheapLimit
	if p.matcher != nil && !p.macros {
		return nil
	}
	p.program, err = env.Program(tree, metered, cel.InterruptCheckFrequency(uint(p.steps)))
	return err
}

// ended is a context that is done: a program looks at it after the number of steps that
// it was made with, and not before.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// String returns the canonical text, which Compile makes the same predicate from.
func (p *Predicate) String() string { return p.text }

// Usage returns what the expression reads. Nobody writes to it.
func (p *Predicate) Usage() Usage { return p.usage }

// Steps reports whether the expression has macros, which take a step for each element.
func (p *Predicate) Steps() bool { return p.macros }

// Cheap reports whether no evaluation over a value of the size that the expression was
// compiled for takes more than CheapLimit.
func (p *Predicate) Cheap() bool { return p.cheap }

// Quick reports whether the expression needs no program, and takes no steps.
func (p *Predicate) Quick() bool { return p.program == nil }

// Terms returns conditions without which the expression is not true, and a prefix that
// the key then has. Nobody writes to them.
func (p *Predicate) Terms() (terms []Term, prefix string) { return p.terms, p.prefix }

// Input is the resource that an expression is evaluated for.
//
// Owned by one goroutine.
type Input struct {
	key      string
	revision int64
	value    any
	hasValue bool
	labels   map[string]string

	boxes struct{ key, revision any } // the same as interfaces; nil: not wanted yet

	element any   // that a macro of a matcher is at
	steps   int   // that these macros may still take
	meter   meter // of the evaluation at hand
	spent   int   // by the last evaluation
}

// Set sets the resource, which has no value and no labels then.
func (in *Input) Set(key string, revision uint64) {
	*in = Input{key: key, revision: int64(min(revision, math.MaxInt64))}
}

// SetValue sets the value, or as much of it as the expression reads.
func (in *Input) SetValue(value any) { in.value, in.hasValue = value, true }

// SetLabels sets the labels.
func (in *Input) SetLabels(labels map[string]string) { in.labels = labels }

// take takes some steps. It returns false if there are not as many, and then never again any.
func (in *Input) take(steps int) bool {
	in.steps -= steps
	return in.steps > 0
}

// Spent returns what the last evaluation has cost, in units of about 100 ns.
func (in *Input) Spent() int { return in.spent }

func (in *Input) boxedKey() any {
	if in.boxes.key == nil {
		in.boxes.key = in.key
	}
	return in.boxes.key
}

func (in *Input) boxedRevision() any {
	if in.boxes.revision == nil {
		in.boxes.revision = in.revision
	}
	return in.boxes.revision
}

// ResolveName implements cel.Activation.
func (in *Input) ResolveName(name string) (any, bool) {
	switch name {
	case "value":
		return in.value, in.hasValue
	case "key":
		return in.boxedKey(), true
	case "labels":
		return in.labels, true
	case "revision":
		return in.boxedRevision(), true
	case meterName:
		return &in.meter, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (*Input) Parent() cel.Activation { return nil }

// Errors of an evaluation.
var (
	// ErrNoResult: something that the expression needs is absent, or is of another kind,
	// or the result is neither true nor false.
	ErrNoResult = errors.New("the filter has no result for this value")
	// ErrCost: the evaluation was given up.
	ErrCost = errors.New("the filter costs too much for this value")
)

// Holds reports whether the expression is true of a resource. An error is ErrNoResult or
// ErrCost.
func (p *Predicate) Holds(in *Input) (bool, error) {
	in.spent = 1
	if t, ok := p.match(in); ok {
		if t == isNeither {
			return false, ErrNoResult
		}
		return t == isTrue, nil
	}
	if p.program == nil {
		return false, ErrCost
	}
	result, err := p.eval(in)
	if err != nil {
		return false, failure(err)
	}
	if truth, ok := result.Value().(bool); ok {
		return truth, nil
	}
	return false, ErrNoResult
}

// failure translates the error of a program.
func failure(err error) error {
	if errors.Is(err, interpreter.InterruptError{}) || errors.As(err, new(interpreter.EvalCancelledError)) {
		return ErrCost
	}
	return ErrNoResult
}

// match asks the matcher. It returns false if that does not decide: because there is none, or
// because it has given up. If there is a program it decides then. It may end later, so that
// the order in which the matcher goes through an object makes no difference.
func (p *Predicate) match(in *Input) (t truth, ok bool) {
	if p.matcher == nil {
		return isNeither, false
	}
	in.steps, in.meter = int(p.steps), meter{}
	t = p.matcher.eval(in)
	in.spent += in.meter.spent
	if p.macros {
		in.spent += min(int(p.steps)-in.steps, int(p.steps)) * (CostLimit / int(p.steps))
	}
	return t, !in.meter.exceeded() && (!p.macros || in.steps > 0)
}

func (p *Predicate) eval(in *Input) (result ref.Val, err error) {
	in.meter = meter{}
	if p.macros {
		result, _, err = p.program.ContextEval(ended, in)
	} else {
		result, _, err = p.program.Eval(in)
	}
	in.spent += in.meter.spent
	return result, err
}
