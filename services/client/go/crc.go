package muster

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// combine returns the CRC of bytes with a CRC followed by `size` bytes with another, without reading them. CRCs are
// polynomials over GF(2); the highest bit is the coefficient of x^0.
func combine(crc, next uint32, size int) uint32 {
	shift := uint32(1 << 23) // x^8: by one byte
	for ; size > 0; size >>= 1 {
		if size&1 != 0 {
			crc = multiply(shift, crc)
		}
		shift = multiply(shift, shift)
	}
	return crc ^ next
}

func multiply(a, b uint32) (product uint32) {
	for bit := uint32(1 << 31); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.Castagnoli
		} else {
			b >>= 1
		}
	}
	return product
}
