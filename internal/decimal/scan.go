package decimal

const (
	// MaxDigits is how many significant digits of a number are read.
	MaxDigits = 128
	// MaxExponent is the largest exponent of ten that is read. Those beyond are taken for it.
	MaxExponent = 1 << 40
)

// Scanned is the number 0.d₀d₁d₂… × 10^Exponent. The first digit is not 0, nor is the last one.
type Scanned struct {
	Negative bool
	Digits   [MaxDigits + 1]byte // a 0 follows the last one
	N        int                 // how many there are; 0: the number is zero
	Exponent int64

	// Cut says that there were more digits. Whole says that all of the text is a number of JSON.
	Cut, Whole bool
}

// Scan reads a number of JSON, in a time that depends on the length of its text only. What is no digit where there
// should be one ends it.
func Scan(text []byte) (d Scanned) {
	if len(text) > 0 && text[0] == '-' {
		d.Negative, text = true, text[1:]
	}
	whole := digitsIn(text)
	d.Whole = whole == 1 || whole > 1 && text[0] != '0'
	point, zeros := int64(0), 0 // digits before the point, without leading zeros; zeros that may be the last digits
	for _, c := range text[:whole] {
		if d.N > 0 || c != '0' {
			point++
		}
		zeros = d.add(c, zeros)
	}
	text = text[whole:]
	if len(text) > 0 && text[0] == '.' {
		fraction := digitsIn(text[1:])
		d.Whole = d.Whole && fraction > 0
		for _, c := range text[1 : 1+fraction] {
			if d.N == 0 && c == '0' {
				point--
			}
			zeros = d.add(c, zeros)
		}
		text = text[1+fraction:]
	}
	e, ok := exponentOf(text)
	d.Whole = d.Whole && ok
	d.Exponent = max(-MaxExponent, min(point+e, MaxExponent))
	return d
}

// add adds a digit, after some zeros that count only if another digit follows. It returns how many there are then.
func (d *Scanned) add(c byte, zeros int) int {
	switch {
	case c == '0' && d.N == 0:
		return 0
	case c == '0':
		return zeros + 1
	case d.N+zeros >= MaxDigits:
		d.Cut = true
		return zeros + 1
	}
	d.N += zeros
	d.Digits[d.N] = c - '0'
	d.N++
	return 0
}

// digitsIn returns how many digits a text begins with.
func digitsIn(text []byte) (n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// exponentOf reads the exponent of a number of JSON, from its letter on; none is 0. It reports whether that is all of
// the text.
func exponentOf(text []byte) (e int64, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	n := digitsIn(text)
	for _, c := range text[:n] {
		e = min(10*e+int64(c-'0'), 2*MaxExponent)
	}
	if negative {
		e = -e
	}
	return e, n > 0 && n == len(text)
}
