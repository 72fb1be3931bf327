package rudder

import (
	"bytes"
	"errors"
	"io"
)

const (
	// maxLine is where a line that does not end is broken.
	maxLine = 32 << 10

	// linesAhead is how many pieces of whole lines wait for a slow reader before their source waits, too.
	linesAhead = 16
)

// eachLine hands on what a source says, always whole lines, each with its end: what comes from several sources
// never mixes within a line. It keeps no more than one line; `emit` says false to stop.
func eachLine(from io.Reader, emit func([]byte) bool) error {
	buffer := make([]byte, 0, maxLine)
	for {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		whole := bytes.LastIndexByte(buffer, '\n') + 1
		if whole > 0 {
			if !emit(bytes.Clone(buffer[:whole])) {
				return nil
			}
			buffer = append(buffer[:0], buffer[whole:]...)
		}
		if over := err != nil || len(buffer) == cap(buffer); over && len(buffer) > 0 {
			if !emit(append(bytes.Clone(buffer), '\n')) {
				return nil
			}
			buffer = buffer[:0]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
