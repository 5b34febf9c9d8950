package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/watchtide/watchtide/internal/view/internal/document"
)

// Limits of the keys that a view has.
const (
	MaxKeys     = 1000     // how many
	MaxKeysText = 64 << 10 // bytes of a list of them
)

// ParseKeys reads keys with commas between them. A key in double quotes may have commas, and its quotation
// marks are doubled. Any bytes are a key, but not none. An error is an *Error.
func ParseKeys(text string) (keys []string, err error) {
	if len(text) > MaxKeysText {
		return nil, refuse("keys", "", fmt.Errorf("the keys are %d bytes long, and at most %d are allowed", len(text), MaxKeysText))
	}
	for at := 0; ; at++ { // past the comma
		key, n, mistake := firstKey(text[at:])
		if mistake != nil {
			mistake.Offset += at
			return nil, refuse("keys", text, mistake)
		}
		if keys = append(keys, key); len(keys) > MaxKeys {
			return nil, tooManyKeys()
		}
		if at += n; at == len(text) {
			return keys, nil
		}
	}
}

func tooManyKeys() error {
	return refuse("keys", "", fmt.Errorf("there are more than %d keys", MaxKeys))
}

// firstKey reads the key at the beginning of a list, and returns how many bytes it takes there.
func firstKey(text string) (key string, n int, mistake *document.Mistake) {
	if !strings.HasPrefix(text, `"`) {
		if n = strings.IndexByte(text, ','); n < 0 {
			n = len(text)
		}
		if n == 0 {
			return "", 0, &document.Mistake{Problem: "a key is missing", Advice: "want keys with commas between them"}
		}
		return text[:n], n, nil
	}
	for n = 1; ; n += 2 {
		end := strings.IndexByte(text[n:], '"')
		if end < 0 {
			return "", 0, &document.Mistake{Problem: "the quotation mark is never closed", Advice: `want another " after the key`}
		}
		key, n = key+text[n:n+end], n+end
		if !strings.HasPrefix(text[n:], `""`) {
			break
		}
		key += `"`
	}
	switch n++; {
	case key == "":
		return "", 0, &document.Mistake{Problem: "a key is empty", Advice: "want keys with commas between them"}
	case n < len(text) && text[n] != ',':
		return "", 0, &document.Mistake{Offset: n, Problem: "there is something after the quotation mark", Advice: `want a comma, or "" for a quotation mark in the key`}
	}
	return key, n, nil
}

// FormatKeys returns keys as ParseKeys reads them.
func FormatKeys(keys []string) string {
	var out strings.Builder
	for i, key := range keys {
		if i > 0 {
			out.WriteByte(',')
		}
		if strings.ContainsAny(key, `,"`) {
			key = `"` + strings.ReplaceAll(key, `"`, `""`) + `"`
		}
		out.WriteString(key)
	}
	return out.String()
}

// parseKeys reads the keys that a view has at most.
func (d *Definition) parseKeys(p Params) error {
	var all []string
	for _, text := range p.Keys {
		some, err := ParseKeys(text)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > MaxKeys {
		return tooManyKeys()
	}
	if text := FormatKeys(all); len(text) > MaxKeysText {
		return refuse("keys", "", fmt.Errorf("the keys are %d bytes long, and at most %d are allowed", len(text), MaxKeysText))
	}
	d.texts.keys = all
	return nil
}

// Keys returns the keys that the view is of, sorted; nil: any. They must not be modified.
func (d *Definition) Keys() []string { return d.texts.keys }

// asList returns keys as Params has them.
func asList(keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	return []string{FormatKeys(keys)}
}

// names reports whether a key is one of those that the view is of.
func (d *Definition) names(key string) bool {
	if len(d.texts.keys) == 0 {
		return true
	}
	_, found := slices.BinarySearch(d.texts.keys, key)
	return found
}

// namedBytes is about what a key takes in a definition and in an Index, besides its bytes.
const namedBytes = 128

// Bytes is about how much memory the keys of the definition take, with their places in an Index.
func (d *Definition) Bytes() (n int64) {
	for _, key := range d.texts.keys {
		n += int64(len(key)) + namedBytes
	}
	return n
}
