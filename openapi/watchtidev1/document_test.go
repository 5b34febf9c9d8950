package watchtidev1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/watchtide/watchtide/openapi/watchtidev1"
	"github.com/watchtide/watchtide/stream"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(watchtidev1.Document)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func schema(t *testing.T, doc *openapi3.T, name string) *openapi3.Schema {
	t.Helper()
	s := doc.Components.Schemas[name]
	if s == nil {
		t.Fatalf("the document has no schema %s", name)
	}
	return s.Value
}

func TestDocumentIsValid(t *testing.T) {
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// TestDocumentNamesEveryRefusalOfAStream: those that are sent, and no others.
func TestDocumentNamesEveryRefusalOfAStream(t *testing.T) {
	doc := load(t)
	for _, path := range []string{"/v1/events", "/v1/watches/{watch}/events"} {
		responses := doc.Paths.Value(path).Get.Responses
		refusals := []int{400, 401, 403, 404, 406, 414, 421, 429, 503}
		if n := responses.Len(); n != len(refusals)+1 {
			t.Errorf("GET %s: %d answers, want %v and 200", path, n, refusals)
		}
		for _, status := range refusals {
			r := responses.Status(status)
			if r == nil || r.Value.Content["application/problem+json"] == nil {
				t.Errorf("GET %s: no problem+json for %d", path, status)
			}
		}
		for _, media := range []string{"text/event-stream", "application/x-ndjson"} {
			if responses.Status(200).Value.Content[media] == nil {
				t.Errorf("GET %s: no %s", path, media)
			}
		}
	}
}

// TestDocumentHasEveryUnaryMethod: a method without an HTTP mapping, or an
// operation whose method is gone, is a mistake.
func TestDocumentHasEveryUnaryMethod(t *testing.T) {
	documented := map[string]bool{}
	for _, item := range load(t).Paths.Map() {
		for _, op := range item.Operations() {
			documented[op.OperationID] = true
		}
	}
	methods := watchtidev1.File_watchtide_v1_watch_proto.Services().ByName("WatchService").Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		if name := string(m.Name()); documented[name] == m.IsStreamingServer() {
			t.Errorf("method %s: streaming %t, but documented as an operation %t", name, m.IsStreamingServer(), documented[name])
		}
	}
}

// TestSchemasHaveTheFieldsOfTheMessages: the overlay must not add a member that
// the proto does not have, nor require one that does not exist.
func TestSchemasHaveTheFieldsOfTheMessages(t *testing.T) {
	doc := load(t)
	messages := watchtidev1.File_watchtide_v1_watch_proto.Messages()
	for _, name := range []string{"Resource", "Watch", "ListWatchesResponse", "ListResourcesResponse", "DeleteResourceResponse"} {
		s := schema(t, doc, name)
		fields := fieldNames(messages.ByName(protoreflect.Name(name)))
		for property := range s.Properties {
			if !slices.Contains(fields, property) {
				t.Errorf("schema %s has %s, which the message has not", name, property)
			}
		}
		for _, field := range append(fields, s.Required...) {
			if s.Properties[field] == nil {
				t.Errorf("schema %s lacks %s", name, field)
			}
		}
	}
}

func fieldNames(m protoreflect.MessageDescriptor) (names []string) {
	for i := range m.Fields().Len() {
		names = append(names, string(m.Fields().Get(i).Name()))
	}
	return names
}

// TestSchemasUseTheWordsOfTheCode: the same names for types, states and reasons
// in the document as in package stream.
func TestSchemasUseTheWordsOfTheCode(t *testing.T) {
	doc := load(t)
	for _, c := range []struct {
		schema, property string
		words            []any
	}{
		{"StatusEvent", "state", []any{
			stream.Priming.String(), stream.InSync.String(), stream.Resyncing.String(), stream.Stale.String(), stream.CatchingUp.String(),
		}},
		{"Watch", "state", []any{
			stream.Priming.String(), stream.InSync.String(), stream.Resyncing.String(), stream.Stale.String(),
		}},
		{"ResetEvent", "reason", []any{
			string(stream.ResetInitial), string(stream.ResetExpired), string(stream.ResetAhead),
			string(stream.ResetEpochChanged), string(stream.ResetInvalidPosition),
		}},
	} {
		if got := schema(t, doc, c.schema).Properties[c.property].Value.Enum; !slices.Equal(got, c.words) {
			t.Errorf("%s.%s: the document has %v, the code %v", c.schema, c.property, got, c.words)
		}
	}
}

func TestEventHasEveryTypeOfTheCode(t *testing.T) {
	mapping := schema(t, load(t), "Event").Discriminator.Mapping
	types := []stream.EventType{
		stream.Hello, stream.Reset, stream.Upsert, stream.Delete,
		stream.EndOfSnapshot, stream.Bookmark, stream.StatusChange, stream.Goodbye,
	}
	for _, e := range types {
		if mapping[e.String()] == "" {
			t.Errorf("no schema for events of the type %s", e)
		}
	}
	if len(mapping) != len(types) {
		t.Errorf("the document has %d types of events, the code %d", len(mapping), len(types))
	}
}

// TestExamplesOfStreams: each object in the examples of the two formats is what
// the schema of its items says.
func TestExamplesOfStreams(t *testing.T) {
	doc := load(t)
	content := doc.Components.Responses["Stream"].Value.Content
	for media, prefix := range map[string]string{"text/event-stream": "data: ", "application/x-ndjson": ""} {
		items := itemSchema(t, doc, content[media])
		objects := 0
		for line := range strings.Lines(content[media].Example.(string)) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), prefix)
			if !ok || data == "" {
				continue
			}
			objects++
			if err := visit(items, data); err != nil {
				t.Errorf("%s: %s: %v", media, data, err)
			}
		}
		if objects < 4 {
			t.Errorf("%s: the example has %d objects, want the whole story", media, objects)
		}
	}
}

// itemSchema follows x-item-schema, which the loader of the document does not.
func itemSchema(t *testing.T, doc *openapi3.T, m *openapi3.MediaType) *openapi3.Schema {
	t.Helper()
	ref, _ := m.Extensions["x-item-schema"].(map[string]any)["$ref"].(string)
	return schema(t, doc, strings.TrimPrefix(ref, "#/components/schemas/"))
}

func visit(s *openapi3.Schema, data string) error {
	var v any
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		return err
	}
	return s.VisitJSON(v)
}

func TestEventSchemaAcceptsAnyValue(t *testing.T) {
	line := schema(t, load(t), "Line")
	for _, value := range []string{`null`, `true`, `12345678901234567890`, `"text"`, `[]`, `{"a":[null]}`} {
		if err := visit(line, `{"type":"upsert","watch":"w","key":"k","revision":"7","value":`+value+`}`); err != nil {
			t.Errorf("value %s: %v", value, err)
		}
	}
}

func TestEventSchemaRefuses(t *testing.T) {
	line := schema(t, load(t), "Line")
	for _, c := range []struct{ name, data string }{
		{"an unknown type", `{"type":"error"}`},
		{"a revision that is a number", `{"type":"bookmark","watch":"w","revision":7}`},
		{"a revision with a leading zero", `{"type":"bookmark","watch":"w","revision":"07"}`},
		{"an upsert without a value", `{"type":"upsert","watch":"w","key":"k","revision":"7"}`},
		{"an upsert without a watch", `{"type":"upsert","key":"k","revision":"7","value":1}`},
		{"a reason that does not exist", `{"type":"reset","watch":"w","reason":"because"}`},
		{"resumed: false", `{"type":"end_of_snapshot","watch":"w","revision":"7","count":1,"resumed":false}`},
	} {
		if visit(line, c.data) == nil {
			t.Errorf("%s is accepted: %s", c.name, c.data)
		}
	}
}
