package adapter

import (
	"iter"
	"os"
	"strings"
)

// ReadSecret returns the content of a file, without the line break at its end. Read the
// file again for each use: the secret may rotate.
func ReadSecret(file string) (string, error) {
	data, err := os.ReadFile(file)
	return strings.TrimRight(string(data), "\r\n"), err
}

// HideSecret hides secrets in a text that an upstream may have written: a rejection may
// repeat the very token that it rejects. Of "Bearer x" it hides x as well, and also
// where the text has been cut in the middle of x. Anything too short for a secret
// stays, or it would be hidden everywhere.
func HideSecret(text string, secrets iter.Seq[string]) string {
	const shortest, beginning = 6, 8
	for value := range secrets {
		if len(value) >= shortest {
			text = strings.ReplaceAll(text, value, hidden)
		}
		bare := value[strings.LastIndexByte(value, ' ')+1:]
		if len(bare) >= shortest {
			text = hideBeginnings(text, bare, min(beginning, len(bare)))
		}
	}
	return text
}

const hidden = "[hidden]"

// hideBeginnings hides a secret, and its beginnings of at least some length.
func hideBeginnings(text, secret string, least int) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, secret[:least])
		out.WriteString(before)
		if !found {
			return out.String()
		}
		n := 0
		for n < len(after) && least+n < len(secret) && after[n] == secret[least+n] {
			n++
		}
		out.WriteString(hidden)
		text = after[n:]
	}
}
