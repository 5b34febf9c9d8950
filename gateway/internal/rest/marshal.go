package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/watchtide/watchtide/openapi/watchtidev1"
)

// marshaler writes the messages of the unary API as the JSON of the contract: names
// in snake_case, values inline and byte for byte as they are stored, revisions as
// strings, counts as numbers. protojson would write values in base64 and omit zeroes.
//
// It reads only one thing: a request body that is a JSON value.
type marshaler struct{}

var _ runtime.Marshaler = marshaler{}

// ContentType implements runtime.Marshaler.
func (marshaler) ContentType(any) string { return "application/json" }

// Marshal implements runtime.Marshaler.
func (marshaler) Marshal(v any) ([]byte, error) {
	switch m := v.(type) {
	case *api.ListWatchesResponse:
		return appendWatches(nil, m), nil
	case *api.Watch:
		return append(appendWatch(nil, m), '\n'), nil
	case *api.ListResourcesResponse:
		return appendPage(make([]byte, 0, pageSize(m)), m), nil
	case *api.Resource:
		return append(appendResource(nil, m), '\n'), nil
	case *api.PutResourceResponse:
		return append(appendResource(nil, m.GetResource()), '\n'), nil
	case *api.DeleteResourceResponse:
		return fmt.Appendf(nil, "{\"deleted\":%t}\n", m.GetDeleted()), nil
	default:
		return nil, fmt.Errorf("gateway: no JSON form of %T", v)
	}
}

// Unmarshal implements runtime.Marshaler: data is the value, in any JSON form.
func (marshaler) Unmarshal(data []byte, v any) error {
	value, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("gateway: a body cannot become a %T", v)
	}
	*value = data
	return nil
}

// NewDecoder implements runtime.Marshaler.
func (m marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		if b, read := r.(*valueBody); read {
			return m.Unmarshal(b.raw, v)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return m.Unmarshal(body, v)
	})
}

// NewEncoder implements runtime.Marshaler.
func (m marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		b, err := m.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

func appendWatches(dst []byte, m *api.ListWatchesResponse) []byte {
	dst = appendString(append(dst, `{"instance":`...), m.GetInstance())
	dst = append(dst, `,"watches":[`...)
	for i, w := range m.GetWatches() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendWatch(dst, w)
	}
	return append(dst, "]}\n"...)
}

func appendWatch(dst []byte, w *api.Watch) []byte {
	dst = appendString(append(dst, `{"name":`...), w.GetName())
	dst = appendString(append(dst, `,"source":`...), w.GetSource())
	dst = appendString(append(dst, `,"state":`...), w.GetState())
	dst = appendTime(dst, "since", w.GetSince())
	dst = appendText(dst, "reason", w.GetReason())
	dst = appendString(append(dst, `,"epoch":`...), w.GetEpoch())
	dst = appendRevision(dst, w.GetRevision())
	dst = strconv.AppendUint(append(dst, `,"count":`...), w.GetCount(), 10)
	dst = strconv.AppendUint(append(dst, `,"bytes":`...), w.GetBytes(), 10)
	dst = strconv.AppendUint(append(dst, `,"subscribers":`...), w.GetSubscribers(), 10)
	dst = strconv.AppendBool(append(dst, `,"writable":`...), w.GetWritable())
	dst = appendUpstream(append(dst, `,"upstream":`...), w.GetUpstream())
	dst = strconv.AppendUint(append(dst, `,"changes":`...), w.GetChanges(), 10)
	if w.GetPartial() {
		dst = append(dst, `,"partial":true`...)
	}
	return append(dst, '}')
}

func appendUpstream(dst []byte, u *api.Upstream) []byte {
	dst = strconv.AppendBool(append(dst, `{"connected":`...), u.GetConnected())
	dst = appendTime(dst, "since", u.GetSince())
	dst = strconv.AppendUint(append(dst, `,"attempts":`...), uint64(u.GetAttempts()), 10)
	dst = appendText(dst, "last_error", u.GetLastError())
	dst = appendTime(dst, "last_error_at", u.GetLastErrorAt())
	dst = appendTime(dst, "next_attempt_at", u.GetNextAttemptAt())
	return append(dst, '}')
}

// appendTime appends a member to an object, unless t is nil.
func appendTime(dst []byte, name string, t *timestamppb.Timestamp) []byte {
	if t == nil {
		return dst
	}
	return appendMoment(dst, name, t.AsTime())
}

// appendText appends a member to an object, unless it is empty.
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return appendString(append(append(append(dst, `,"`...), name...), `":`...), text)
}

func appendPage(dst []byte, p *api.ListResourcesResponse) []byte {
	dst = appendString(append(dst, `{"watch":`...), p.GetWatch())
	dst = appendString(append(dst, `,"position":`...), p.GetPosition())
	dst = appendRevision(dst, p.GetRevision())
	dst = strconv.AppendUint(append(dst, `,"count":`...), p.GetCount(), 10)
	if p.Total != nil {
		dst = strconv.AppendUint(append(dst, `,"total":`...), p.GetTotal(), 10)
		dst = strconv.AppendUint(append(dst, `,"before":`...), p.GetBefore(), 10)
		dst = appendText(dst, "next", p.GetNext())
	}
	dst = append(dst, `,"resources":[`...)
	for i, r := range p.GetResources() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendResource(dst, r)
	}
	dst = appendString(append(dst, `],"next_page_token":`...), p.GetNextPageToken())
	return append(dst, "}\n"...)
}

// pageSize estimates the bytes of a page, so that it is written into one slice.
func pageSize(p *api.ListResourcesResponse) int {
	n := 512
	for _, r := range p.GetResources() {
		n += len(r.GetKey()) + len(r.GetValue()) + 96
	}
	return n
}

func appendResource(dst []byte, r *api.Resource) []byte {
	dst = appendString(append(dst, `{"key":`...), r.GetKey())
	dst = appendRevision(dst, r.GetRevision())
	if e := r.GetKeyEncoding(); e != "" {
		dst = appendString(append(dst, `,"key_encoding":`...), e)
	}
	if e := r.GetEncoding(); e != "" {
		dst = appendString(append(dst, `,"encoding":`...), e)
	}
	dst = append(dst, `,"value":`...)
	dst = append(dst, r.GetValue()...)
	return append(dst, '}')
}

func appendRevision(dst []byte, revision uint64) []byte {
	dst = strconv.AppendUint(append(dst, `,"revision":"`...), revision, 10)
	return append(dst, '"')
}

// appendString writes s as a JSON string. Most strings are plain and are copied.
func appendString(dst []byte, s string) []byte {
	if plain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // of a string into memory: cannot fail
	return append(dst, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// plain reports whether s is ASCII that needs no escaping in a JSON string.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
