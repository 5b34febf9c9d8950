// Package secret reads secrets from files, and redacts them in foreign texts.
package secret

import (
	"iter"
	"os"
	"strings"
)

// Read returns the content of a file, without the line break at its end. Read the
// file again for each use: the secret may rotate.
func Read(file string) (string, error) {
	data, err := os.ReadFile(file)
	return strings.TrimRight(string(data), "\r\n"), err
}

// Hide hides secrets in a text that an upstream may have written: a rejection may
// repeat the very token that it rejects. Of "Bearer x" it hides x as well. Anything
// too short for a secret stays, or it would be hidden everywhere.
func Hide(text string, secrets iter.Seq[string]) string {
	const shortest = 6
	for value := range secrets {
		for _, secret := range []string{value, value[strings.LastIndexByte(value, ' ')+1:]} {
			if len(secret) >= shortest {
				text = strings.ReplaceAll(text, secret, "[hidden]")
			}
		}
	}
	return text
}
