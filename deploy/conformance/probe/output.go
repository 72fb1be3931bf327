package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
)

// lineLimit is a length at which drivers of Docker split a line.
const lineLimit = 16 << 10

func outputChecks() []check {
	return []check{{"output.bytes", "output", true, "", writePattern}}
}

// outputPattern has all that is known to be changed or lost in transit: long lines, lines as long as the limits of drivers,
// bytes that are no text, and no line break at its end.
func outputPattern() []byte {
	var pattern bytes.Buffer
	for _, length := range []int{lineLimit - 1, lineLimit, lineLimit + 1, 3 * lineLimit} {
		pattern.Write(bytes.Repeat([]byte{'x'}, length))
		pattern.WriteByte('\n')
	}
	for value := range 256 {
		pattern.WriteByte(byte(value))
	}
	pattern.WriteString("\r\n\n\xff\xfe no line break at the end")
	return pattern.Bytes()
}

// writePattern writes the pattern to the standard error stream, so that the lines of the probes stay readable. The
// container cannot know what arrives: compare the output of the job with the measured digest.
func writePattern() finding {
	pattern := outputPattern()
	_, err := os.Stderr.Write(pattern)
	return holds(fmt.Sprintf("%d bytes on stderr with the SHA-256 %x", len(pattern), sha256.Sum256(pattern)), err)
}
