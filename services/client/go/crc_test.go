package muster

import (
	"hash/crc32"
	"testing"
)

func TestCombinedChecksumsAreThatOfTheWhole(t *testing.T) {
	data := make([]byte, 70_000)
	for i := range data {
		data[i] = byte(i * 31)
	}
	sum := func(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
	for _, cut := range []int{0, 1, 2, 97, 4096, 65_535, 65_536, 69_999, 70_000} {
		if got := combine(sum(data[:cut]), sum(data[cut:]), len(data)-cut); got != sum(data) {
			t.Errorf("cut at %d: %08x", cut, got)
		}
	}
}
