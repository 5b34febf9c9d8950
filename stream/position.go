package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// MaxPositionLength is the maximum length in bytes of the positions of one stream,
// comma-separated, in the id of an event.
const MaxPositionLength = 1024

// maxEpochLength keeps a position short; longer epochs are hashed.
const maxEpochLength = 24

// Position is a place in a watch, opaque to clients. On the wire it is
// "watch@epoch-R": everything up to revision R has been delivered. Inside a snapshot
// or a catch-up it is "watch@epoch-R/T": as seen at revision T, upserts up to R and
// deletes up to T have been delivered. After either form, "!D" means that deletes
// without an upstream revision are complete only as far as they happened before
// revision T-D. "~N" at the end names the run of the replica that issued the
// position.
type Position struct {
	Watch string
	Epoch string
	// Upserts is R. 0 inside a snapshot: nothing yet.
	Upserts uint64
	// AsOf is T; equal to Upserts outside of a snapshot or a catch-up.
	AsOf uint64
	// DeletesBehind is D: AsOf less DeletesCompleteTo. 0 unless deletes have no revision.
	DeletesBehind uint64
	// Run names the run of the replica that issued the position; 0: any replica may
	// have. A position inside a snapshot or a catch-up has none.
	Run uint32
}

// DeletesCompleteTo is how far deletes without a revision are complete: each one that
// happened while the newest revision of the upstream was lower has been delivered.
func (p Position) DeletesCompleteTo() uint64 { return p.AsOf - min(p.DeletesBehind, p.AsOf) }

// At returns the position of a reader that has everything up to a revision, and
// deletes as far as p has them. It names no run unless p is that position.
func (p Position) At(revision uint64) Position {
	if p.Upserts == revision && p.AsOf == revision {
		return p
	}
	deletesTo := p.DeletesCompleteTo()
	p.Upserts, p.AsOf, p.DeletesBehind, p.Run = revision, revision, 0, 0
	if strings.HasPrefix(p.Epoch, UnnumberedEpoch) {
		p.DeletesBehind = revision - min(revision, deletesTo)
	}
	return p
}

// OfNothing returns the position of a reader that has nothing, or only some of the resources at
// p, and has seen no delete after p.
func (p Position) OfNothing() Position {
	p.Upserts, p.Run = 0, 0
	return p
}

// maxDeletesBehind bounds the length of D in a position. Beyond it, "!" alone means that
// nothing is known about such deletes.
const maxDeletesBehind = 999_999

// Partial reports whether the position is inside a snapshot or a catch-up.
func (p Position) Partial() bool { return p.Upserts != p.AsOf }

// String returns the position as it is on the wire.
func (p Position) String() string { return string(p.Append(nil)) }

// Append appends the position as it is on the wire.
func (p Position) Append(dst []byte) []byte {
	dst = append(dst, p.Watch...)
	dst = append(dst, '@')
	dst = append(dst, p.Epoch...)
	dst = append(dst, '-')
	dst = strconv.AppendUint(dst, p.Upserts, 10)
	if p.Partial() {
		dst = append(dst, '/')
		dst = strconv.AppendUint(dst, p.AsOf, 10)
	}
	switch {
	case p.DeletesBehind > maxDeletesBehind:
		dst = append(dst, '!')
	case p.DeletesBehind > 0:
		dst = strconv.AppendUint(append(dst, '!'), p.DeletesBehind, 10)
	}
	if p.Run != 0 {
		dst = strconv.AppendUint(append(dst, '~'), uint64(p.Run), runBase)
	}
	return dst
}

// runBase is the base in which the name of a run is written.
const runBase = 36

const positionForm = "watch@epoch-revision, as it stood in an id"

// ParsePosition parses one position.
func ParsePosition(s string) (Position, error) {
	bad := &InvalidError{What: "position", Got: s, Want: positionForm}
	at := strings.IndexByte(s, '@')
	dash := strings.LastIndexByte(s, '-')
	if at < 1 || dash < at+2 {
		return Position{}, bad
	}
	p := Position{Watch: s[:at], Epoch: s[at+1 : dash]}
	if CheckWatchName(p.Watch) != nil || !validEpoch(p.Epoch) {
		return Position{}, bad
	}
	place, run, named := strings.Cut(s[dash+1:], "~")
	revisions, deletesBehind, behind := strings.Cut(place, "!")
	r, t, partial := strings.Cut(revisions, "/")
	var ok bool
	if p.Upserts, ok = parseRevision(r); !ok {
		return Position{}, bad
	}
	p.AsOf = p.Upserts
	if partial {
		// R = T is written without T, and R is never beyond T.
		if p.AsOf, ok = parseRevision(t); !ok || p.Upserts >= p.AsOf {
			return Position{}, bad
		}
	}
	if behind {
		if p.DeletesBehind, ok = parseDeletesBehind(deletesBehind, p); !ok {
			return Position{}, bad
		}
	}
	if named {
		if p.Run, ok = parseRun(run, p); !ok {
			return Position{}, bad
		}
	}
	return p, nil
}

// parseDeletesBehind parses what follows "!" in p.
func parseDeletesBehind(s string, p Position) (uint64, bool) {
	if !strings.HasPrefix(p.Epoch, UnnumberedEpoch) {
		return 0, false
	}
	if s == "" {
		return p.AsOf, p.AsOf > maxDeletesBehind
	}
	d, ok := parseRevision(s)
	return d, ok && d > 0 && d <= min(p.AsOf, maxDeletesBehind)
}

// parseRun parses what follows "~" in p.
func parseRun(s string, p Position) (uint32, bool) {
	if p.Partial() {
		return 0, false
	}
	n, err := strconv.ParseUint(s, runBase, 32)
	return uint32(n), err == nil && n > 0 && strconv.FormatUint(n, runBase) == s
}

// ParsePositions parses a comma-separated list with at most one position for each
// watch. An empty string is an empty list.
func ParsePositions(s string) ([]Position, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > MaxPositionLength {
		return nil, &InvalidError{What: "positions", Got: s, Want: "at most 1,024 bytes"}
	}
	var out []Position
	for part := range strings.SplitSeq(s, ",") {
		p, err := ParsePosition(part)
		if err != nil {
			return nil, err
		}
		for _, q := range out {
			if q.Watch == p.Watch {
				return nil, &InvalidError{What: "positions", Got: s, Want: "one position for each watch"}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// parseRevision parses a canonical decimal number: no sign, no leading zero.
func parseRevision(s string) (uint64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' || s[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// CheckWatchName checks that a name is valid for a watch: 1 to 64 letters, digits,
// '.', '_' and '-', so that it needs no quoting in a URL, a position, a metric or a
// shell.
func CheckWatchName(name string) error {
	ok := name != "" && len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		ok = isAlphanumeric(name[i]) || strings.IndexByte("._-", name[i]) >= 0
	}
	if !ok {
		return &InvalidError{What: "watch name", Got: name, Want: "1 to 64 letters, digits, '.', '_' or '-'"}
	}
	return nil
}

func validEpoch(e string) bool {
	if e == "" || len(e) > maxEpochLength {
		return false
	}
	for i := range len(e) {
		if !isAlphanumeric(e[i]) && strings.IndexByte("._~", e[i]) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// UnnumberedEpoch is the prefix of the name of an epoch in which deletes have no
// revision of their own; see DeletesUnnumbered. It is in the name so that followers
// of the watch, such as another gateway, know it too.
const UnnumberedEpoch = "_"

// CanonicalEpoch returns e if it can be used in a position, else a short hash of it,
// the same on every replica.
func CanonicalEpoch(e string) string {
	if validEpoch(e) {
		return e
	}
	sum := sha256.Sum256([]byte(e))
	hash := hex.EncodeToString(sum[:6])
	if strings.HasPrefix(e, UnnumberedEpoch) {
		hash = UnnumberedEpoch + hash
	}
	return hash
}

// UnnumberedName is the epoch e of a source whose deletes have no revisions.
func UnnumberedName(e string) string {
	return CanonicalEpoch(UnnumberedEpoch + strings.TrimPrefix(e, UnnumberedEpoch))
}

// LongestPosition returns the maximum length in bytes of a position of this watch, so
// that a stream can be refused at its start and not midway. The longest is one inside
// a snapshot, which names two revisions and no run.
func LongestPosition(watch string) int {
	longest := Position{
		Watch: watch, Epoch: strings.Repeat("x", maxEpochLength),
		Upserts: math.MaxUint64 - 1, AsOf: math.MaxUint64, DeletesBehind: maxDeletesBehind,
	}
	return len(longest.String())
}
