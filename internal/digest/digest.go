package digest

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Digest is the digest of a state: how many resources it has, and the 128-bit sum of their
// hashes. The zero value is that of the empty state.
type Digest struct {
	Count  uint64
	Hi, Lo uint64
}

// Add returns the digest of the state with one more resource.
func (d Digest) Add(h Hash) Digest {
	lo, carry := bits.Add64(d.Lo, uint64(h), 0)
	return Digest{d.Count + 1, d.Hi + carry, lo}
}

// Sub returns the digest of the state without a resource that it has.
func (d Digest) Sub(h Hash) Digest {
	lo, borrow := bits.Sub64(d.Lo, uint64(h), 0)
	return Digest{d.Count - 1, d.Hi - borrow, lo}
}

// String returns the text of the digest: the count in decimal, "-", and the sum as 32 hexadecimal
// digits.
func (d Digest) String() string { return string(d.Append(nil)) }

// Append appends the text of the digest.
func (d Digest) Append(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, d.Count, 10), '-')
	return appendHex(appendHex(dst, d.Hi), d.Lo)
}

func appendHex(dst []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[n>>shift&15])
	}
	return dst
}

// Parse returns the digest with a text. Each digest has one text.
func Parse(text string) (Digest, error) {
	count, sum, _ := strings.Cut(text, "-")
	var d Digest
	var err [3]error
	if len(sum) == 32 {
		d.Count, err[0] = strconv.ParseUint(count, 10, 64)
		d.Hi, err[1] = strconv.ParseUint(sum[:16], 16, 64)
		d.Lo, err[2] = strconv.ParseUint(sum[16:], 16, 64)
	}
	if err != [3]error{} || d.String() != text {
		return Digest{}, fmt.Errorf("%.80q is not a digest: want a count, \"-\" and 32 hexadecimal digits in lower case", text)
	}
	return d, nil
}
