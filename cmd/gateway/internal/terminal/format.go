package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
)

// The forms of output. JSONPath is followed by = and a template.
const (
	JSON        = "json"
	NDJSON      = "ndjson"
	TableFormat = "table"
	YAML        = "yaml"
	JSONPath    = "jsonpath"
)

// Flag is the flag --output of a command.
type Flag struct {
	offered []string

	// Static after the command line is parsed.
	text string
}

// Register adds the flag to a command, which has these forms.
func (f *Flag) Register(c *cobra.Command, offered ...string) {
	f.offered = offered
	c.Flags().StringVarP(&f.text, "output", "o", "", "the `FORM` of the output: "+f.forms())
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(shown(offered), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// shown returns how forms are written.
func shown(offered []string) []string {
	out := slices.Clone(offered)
	if at := slices.Index(out, JSONPath); at >= 0 {
		out[at] = JSONPath + "="
	}
	return out
}

func (f *Flag) forms() string {
	forms := shown(f.offered)
	if last := len(forms) - 1; strings.HasSuffix(forms[last], "=") {
		forms[last] += "TEMPLATE"
	}
	return strings.Join(forms[:len(forms)-1], ", ") + " or " + forms[len(forms)-1]
}

// Format reads the flag; without it, the form is the one of that name.
func (f *Flag) Format(otherwise string) (Format, error) {
	if f.text == "" {
		return Format{Name: otherwise}, nil
	}
	name, template, isTemplate := strings.Cut(f.text, "=")
	if !slices.Contains(f.offered, name) || isTemplate != (name == JSONPath) || isTemplate && template == "" {
		return Format{}, fmt.Errorf("--output %q: want %s", f.text, f.forms())
	}
	if name != JSONPath {
		return Format{Name: name}, nil
	}
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	if err := jsonpath.New("output").Parse(template); err != nil {
		return Format{}, fmt.Errorf("--output %q: %w", f.text, err)
	}
	return Format{Name: name, template: template}, nil
}

// Format is one form of output. Static.
type Format struct {
	Name     string
	template string // of JSONPath
}

// Bytes returns a JSON document in the form, with the end of a line. Table is not a form of one.
func (f Format) Bytes(document []byte) ([]byte, error) {
	var out bytes.Buffer
	var err error
	switch f.Name {
	case JSON:
		err = json.Indent(&out, document, "", "  ")
	case YAML:
		return toYAML(document)
	case JSONPath:
		err = f.execute(&out, document)
	default:
		out.Write(document)
	}
	if err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// Print writes a JSON document in the form. On a terminal, nothing of it is interpreted.
func (f Format) Print(out io.Writer, document []byte, t Terminal) error {
	text, err := f.Bytes(document)
	if err != nil {
		return err
	}
	if t.Size != nil {
		text = Escaped(text)
	}
	_, err = out.Write(text)
	return err
}

func (f Format) execute(out io.Writer, document []byte) error {
	value, err := decode(document)
	if err != nil {
		return err
	}
	path := jsonpath.New("output").AllowMissingKeys(true)
	if err := path.Parse(f.template); err != nil { // again: it keeps what it was executed with
		return err
	}
	return path.Execute(out, value)
}

// decode returns a document as templates compare it: whole numbers are int64, others float64. A
// number for which both are too small is a text.
func decode(document []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return comparable(value), nil
}

func comparable(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = comparable(v[name])
		}
	case []any:
		for i := range v {
			v[i] = comparable(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return n
		}
	}
	return value
}
