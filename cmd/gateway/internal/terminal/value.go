package terminal

import (
	"bytes"
	"encoding/json"
)

// cell is one field of a value.
type cell struct {
	name, text string
}

// wholeValue is the column of values that are not objects.
const wholeValue = "value"

// cells returns the fields of an object in their order, or the value as a whole.
func cells(value []byte) []cell {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return []cell{{wholeValue, text(value)}}
	}
	var out []cell
	for decoder.More() {
		name, err := decoder.Token()
		var field json.RawMessage
		if err != nil || decoder.Decode(&field) != nil {
			break
		}
		out = append(out, cell{printable(name.(string)), text(field)})
	}
	return out
}

// text returns a value for display: a string without its quotation marks,
// anything else as JSON.
func text(value []byte) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return printable(s)
	}
	return printable(string(value))
}
