package changes

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Resources are those of one watch, as an expression sees them. Values are
// parsed once, when they change, and not at each evaluation.
//
// Owned by one goroutine.
type Resources struct {
	values map[string]any
}

// NewResources returns no resources.
func NewResources() *Resources { return &Resources{values: map[string]any{}} }

// Clear removes all of them.
func (r *Resources) Clear() { clear(r.values) }

// Delete removes one; a missing one changes nothing.
func (r *Resources) Delete(key string) { delete(r.values, key) }

// Put adds or replaces one. The value is JSON text.
func (r *Resources) Put(key string, value []byte) error {
	if len(value) == 0 {
		return errNoValue
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return err
	}
	r.values[key] = numbers(v)
	return nil
}

// numbers replaces the JSON numbers in v with CEL numbers.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return v
}

func number(text string) any {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
	}
	n, _ := strconv.ParseFloat(text, 64) // infinite where it does not fit
	return n
}
