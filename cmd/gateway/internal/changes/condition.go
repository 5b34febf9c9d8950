package changes

import (
	"context"
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
)

// Condition is a compiled expression.
//
// Static after Compile; all methods may be called from any goroutine.
type Condition struct {
	program cel.Program
}

// Compile checks an expression. The error shows where it is wrong.
func Compile(expression string) (*Condition, error) {
	env, err := cel.NewEnv(
		cel.Variable("watch", cel.StringType),
		cel.Variable("count", cel.IntType),
		cel.Variable("resources", cel.MapType(cel.StringType, cel.DynType)),
		ext.Strings(),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression gives a value of type %s, want true or false", t)
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, err
	}
	return &Condition{program: program}, nil
}

// Holds reports whether the condition is true of the resources of a watch. An
// error is the reason why it cannot be evaluated, for instance because a
// resource that the expression names does not exist; that may change.
func (c *Condition) Holds(ctx context.Context, watch string, r *Resources) (bool, error) {
	result, _, err := c.program.ContextEval(ctx, map[string]any{
		"watch": watch, "count": int64(len(r.values)), "resources": r.values,
	})
	if err != nil {
		return false, err
	}
	truth, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression gives a %s, want true or false", result.Type().TypeName())
	}
	return truth, nil
}

// errNoValue: an upsert without a value.
var errNoValue = errors.New("the resource has no value")
