package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a file of tokens.
const (
	MaxFileBytes = 16 << 20
	maxName      = 256
	maxGroups    = 256
	maxTokens    = 16 // of one name
)

// TokenHash is the SHA-256 of a token.
type TokenHash [sha256.Size]byte

// HashOfToken returns the hash of a token.
func HashOfToken(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// TokenTable has all tokens of a file. A token is looked up by its hash, so the time that takes may
// reveal something about the hashes, but nothing about a token.
//
// Static after construction.
type TokenTable struct {
	byHash map[TokenHash]*Principal
	byName map[string][]TokenHash
}

// Lookup returns the principal with the token of this hash, even if that has expired; nil: there is
// none.
func (t *TokenTable) Lookup(h TokenHash) *Principal {
	if t == nil {
		return nil
	}
	return t.byHash[h]
}

// Hashes returns the hashes of the tokens of a name. They must not be changed.
func (t *TokenTable) Hashes(name string) []TokenHash {
	if t == nil {
		return nil
	}
	return t.byName[name]
}

// Len returns the number of tokens.
func (t *TokenTable) Len() int {
	if t == nil {
		return 0
	}
	return len(t.byHash)
}

// TokenMistake is an error in a file of tokens.
type TokenMistake struct {
	Line, Column int // from 1; columns count characters
	Text         string
}

// Error returns line:column: text.
func (e *TokenMistake) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

const (
	wantLine   = "name sha256:HASH group,group expires=TIME, as `watchtide token new NAME` prints"
	hashPrefix = "sha256:"
	endPrefix  = "expires="
)

// ParseTokens reads the content of a file: a line for each token, with a name, the hash of the
// token, the groups of the principal, and expires= and the time when the token expires, separated
// by spaces or tabs. Groups are separated by commas; they and the time may be missing. A name may
// have several lines, with the same groups. Lines that begin with # do not count, nor do
// empty ones. An error is a *MistakeError, and never shows a text that may be a token.
func ParseTokens(data []byte) (*TokenTable, error) {
	if len(data) > MaxFileBytes {
		return nil, &TokenMistake{1, 1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), MaxFileBytes)}
	}
	p := parser{table: &TokenTable{byHash: map[TokenHash]*Principal{}, byName: map[string][]TokenHash{}}, lines: map[TokenHash]int{}}
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		p.line++
		if err := p.read(string(bytes.TrimRight(line, "\r\n"))); err != nil {
			return nil, err
		}
	}
	return p.table, nil
}

// parser reads one file. Owned by Parse.
type parser struct {
	table *TokenTable
	lines map[TokenHash]int
	line  int
}

// field is a word of a line.
type field struct {
	text   string
	column int
}

func (p *parser) read(line string) error {
	if !utf8.ValidString(line) {
		return p.mistake(1, "the line is not UTF-8")
	}
	fields := split(line)
	if len(fields) == 0 || strings.HasPrefix(fields[0].text, "#") {
		return nil
	}
	if len(fields) < 2 {
		return p.mistake(utf8.RuneCountInString(line)+1, "the hash is missing; want "+wantLine)
	}
	rest, expires, err := p.expires(fields[2:])
	if err != nil {
		return err
	}
	if len(rest) > 1 {
		return p.mistake(rest[1].column, "want nothing after the groups, which have commas and no spaces between them, but expires=TIME")
	}
	hash, err := p.hash(fields[1])
	if err != nil {
		return err
	}
	if err := p.name(fields[0]); err != nil {
		return err
	}
	groups, err := p.groups(rest)
	if err != nil {
		return err
	}
	if err := p.sameGroups(fields[0], groups); err != nil {
		return err
	}
	name := fields[0].text
	p.table.byHash[hash] = &Principal{Mechanism: Token, Name: name, Groups: groups, Expires: expires}
	p.table.byName[name], p.lines[hash] = append(p.table.byName[name], hash), p.line
	return nil
}

// expires reads the time when a token expires, if the last of some words is one.
func (p *parser) expires(fields []field) (rest []field, at time.Time, err error) {
	if len(fields) == 0 {
		return nil, at, nil
	}
	last := fields[len(fields)-1]
	text, found := strings.CutPrefix(last.text, endPrefix)
	if !found {
		return fields, at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return nil, at, p.mistake(last.column+len(endPrefix), "want a time such as 2027-01-31T00:00:00Z (RFC 3339)")
	}
	return fields[:len(fields)-1], at, nil
}

// sameGroups checks the groups of another token of a name: the groups are those of the principal.
func (p *parser) sameGroups(name field, groups []string) error {
	for _, hash := range p.table.byName[name.text] {
		if !slices.Equal(p.table.byHash[hash].Groups, groups) {
			return p.mistake(name.column, fmt.Sprintf("%q has other groups on line %d: want the same on each of its lines", name.text, p.lines[hash]))
		}
	}
	return nil
}

func (p *parser) hash(f field) (TokenHash, error) {
	digits, found := strings.CutPrefix(f.text, hashPrefix)
	raw, err := hex.DecodeString(digits)
	switch {
	case !found:
		return TokenHash{}, p.mistake(f.column, "want sha256: and the hash of the token, never the token itself")
	case err != nil || len(raw) != sha256.Size:
		return TokenHash{}, p.mistake(f.column+len(hashPrefix), fmt.Sprintf("want %d hexadecimal digits: `printf %%s TOKEN | sha256sum` prints them", 2*sha256.Size))
	case TokenHash(raw) == HashOfToken(""):
		return TokenHash{}, p.mistake(f.column, "this is the hash of an empty text, which is no token")
	case p.lines[TokenHash(raw)] != 0:
		return TokenHash{}, p.mistake(f.column, fmt.Sprintf("line %d has the same hash: want another token on each line", p.lines[TokenHash(raw)]))
	}
	return TokenHash(raw), nil
}

func (p *parser) name(f field) error {
	if len(f.text) > maxName {
		return p.mistake(f.column, fmt.Sprintf("the name has %d bytes; want at most %d", len(f.text), maxName))
	}
	if strings.HasPrefix(f.text, hashPrefix) {
		return p.mistake(f.column, "the name is missing; want "+wantLine)
	}
	if len(p.table.byName[f.text]) == maxTokens {
		return p.mistake(f.column, fmt.Sprintf("%q has %d tokens already: want at most that many", f.text, maxTokens))
	}
	return nil
}

func (p *parser) groups(fields []field) ([]string, error) {
	var groups []string
	for _, f := range fields {
		column := f.column
		for group := range strings.SplitSeq(f.text, ",") {
			switch {
			case group == "":
				return nil, p.mistake(column, "a group is missing here; want group,group")
			case slices.Contains(groups, group):
				return nil, p.mistake(column, fmt.Sprintf("group %q is given twice", group))
			case len(groups) == maxGroups:
				return nil, p.mistake(column, fmt.Sprintf("want at most %d groups", maxGroups))
			}
			groups = append(groups, group)
			column += utf8.RuneCountInString(group) + 1
		}
	}
	return groups, nil
}

func (p *parser) mistake(column int, text string) error {
	return &TokenMistake{Line: p.line, Column: column, Text: text}
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' }

// split returns the words of a line, with their columns.
func split(line string) (out []field) {
	column, start, begin := 1, -1, 0
	for i, r := range line + " " {
		switch at := isSpace(r); {
		case at && start >= 0:
			out = append(out, field{line[start:i], begin})
			start = -1
		case !at && start < 0:
			start, begin = i, column
		}
		column++
	}
	return out
}

// prefix marks a token as one of this gateway, for tools that search repositories for secrets.
const prefix = "watchtide_"

// NewToken returns a new token for a name, and its line in the file. A token has 256 random
// bits, so that its hash needs no salt.
func NewToken(name string, groups []string) (token, line string, err error) {
	return NewTokenUntil(name, groups, time.Time{})
}

// NewTokenUntil is NewToken for a token that expires; the zero time: never. The line has the time in whole
// seconds.
func NewTokenUntil(name string, groups []string, expires time.Time) (token, line string, err error) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	token = prefix + base64.RawURLEncoding.EncodeToString(secret[:])
	hash := HashOfToken(token)
	words := []string{name, hashPrefix + hex.EncodeToString(hash[:])}
	if len(groups) > 0 {
		words = append(words, strings.Join(groups, ","))
	}
	if !expires.IsZero() {
		words = append(words, endPrefix+expires.UTC().Format(time.RFC3339))
	}
	line = strings.Join(words, " ")
	table, err := ParseTokens([]byte(line))
	if err != nil {
		return "", "", err
	}
	if p := table.Lookup(hash); p == nil || p.Name != name || !slices.Equal(p.Groups, groups) {
		return "", "", fmt.Errorf("name %q with groups %q: want words without spaces and commas, and no # at the beginning", name, groups)
	}
	return token, line, nil
}
