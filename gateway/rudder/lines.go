package rudder

import (
	"bytes"
	"errors"
	"io"

	"muster.example/gateway/limits"
)

// eachLine forwards the data of a source as whole lines with their ends, so that sources never mix within a line. It
// buffers at most one line of `limit` bytes; `emit` returns false to stop.
func eachLine(from io.Reader, limit int, emit func([]byte) bool) error {
	buffer := make([]byte, 0, limit)
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

// splitter converts pieces into whole lines, as eachLine does.
type splitter struct {
	rest []byte
	emit func([]byte) bool
}

func (s *splitter) write(piece []byte) bool {
	s.rest = append(s.rest, piece...)
	whole := bytes.LastIndexByte(s.rest, '\n') + 1
	if whole > 0 {
		if !s.emit(bytes.Clone(s.rest[:whole])) {
			return false
		}
		s.rest = append(s.rest[:0], s.rest[whole:]...)
	}
	return len(s.rest) < limits.RunLine || s.flush()
}

// flush ends an unterminated line.
func (s *splitter) flush() bool {
	if len(s.rest) == 0 {
		return true
	}
	line := append(bytes.Clone(s.rest), '\n')
	s.rest = s.rest[:0]
	return s.emit(line)
}
