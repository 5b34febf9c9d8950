package wire

// A CRC-32 is the remainder of a polynomial over the field of two elements. The
// checksum of two concatenated texts therefore follows from those of the two: the
// first is multiplied by x for each bit of the second. This is the method of
// crc32_combine in zlib since 1.2.12. Polynomials have their lowest power in the
// highest bit, as is usual for this checksum (RFC 1952, section 8).

// ieee is the polynomial of CRC-32, without its highest power.
const ieee = 0xedb88320

// one is the polynomial 1.
const one = 1 << 31

// order is the least positive power of x that is 1: ieee is primitive.
const order = 1<<32 - 1

// squares holds x to the powers 1, 2, 4, …, 2^31.
var squares = func() (t [32]uint32) {
	t[0] = one >> 1
	for i := range t[1:] {
		t[i+1] = times(t[i], t[i])
	}
	return t
}()

// times multiplies two polynomials modulo ieee.
func times(a, b uint32) (product uint32) {
	for bit := uint32(one); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		low := b & 1
		b = b>>1 ^ ieee&-low
	}
	return product
}

// power returns x to a power, which must be less than 2^32.
func power(of uint64) uint32 {
	p := uint32(one)
	for i := 0; of != 0; i, of = i+1, of>>1 {
		if of&1 != 0 {
			p = times(squares[i], p)
		}
	}
	return p
}

// bits returns the number of bits in n bytes, as a power of x.
func bits(n uint64) uint64 { return n % order * 8 % order }

// shift returns the part that crc contributes to the checksum of a text that is n
// bytes longer.
func shift(crc uint32, n uint64) uint32 { return times(power(bits(n)), crc) }

// unshift undoes shift.
func unshift(crc uint32, n uint64) uint32 { return times(power(order-bits(n)), crc) }
