package muster

import (
	"crypto/sha256"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"sync"
	"time"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// source provides the bytes of a delivery in pieces. One goroutine calls chunk and finish, another one
// written.
type source interface {
	// chunk returns 1 to limit bytes from an offset on, valid until written() passes them; io.EOF at the end.
	// It waits for the bytes.
	chunk(offset int64, limit int) ([]byte, error)
	// written states that bytes before the offset are not needed any more.
	written(offset int64)
	// finish reads the rest without storing it.
	finish() error
	// whole describes all bytes; false before the end was read.
	whole() (summary, bool)
}

type summary struct {
	size   int64
	crc32c uint32
	sha256 []byte
}

// fileSource can be read again from any offset.
type fileSource struct {
	file   io.ReaderAt
	sum    summary
	buffer []byte
}

// newFileSource reads the file once to compute its digest.
func newFileSource(file io.ReaderAt, size int64) (*fileSource, error) {
	digest, crc := sha256.New(), crc32.New(castagnoli)
	n, err := io.Copy(io.MultiWriter(digest, crc), io.NewSectionReader(file, 0, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, &BodyError{err}
	}
	return &fileSource{file: file, sum: summary{size, crc.Sum32(), digest.Sum(nil)}}, nil
}

func (s *fileSource) chunk(offset int64, limit int) ([]byte, error) {
	n := min(int64(limit), s.sum.size-offset)
	if n <= 0 {
		return nil, io.EOF
	}
	if int64(cap(s.buffer)) < n {
		s.buffer = make([]byte, n)
	}
	buffer := s.buffer[:n]
	if _, err := s.file.ReadAt(buffer, offset); err != nil {
		return nil, &BodyError{err}
	}
	return buffer, nil
}

func (s *fileSource) written(int64)          {}
func (s *fileSource) finish() error          { return nil }
func (s *fileSource) whole() (summary, bool) { return s.sum, true }

// flushAfter bounds how long bytes of a slow sender wait for more.
const flushAfter = time.Second

// streamSource is read once; it buffers what the server has not written yet.
type streamSource struct {
	body   io.Reader
	digest hash.Hash
	crc    uint32
	end    int64 // bytes read
	eof    bool

	mu   sync.Mutex
	base int64    // the offset of the first buffered byte
	kept [][]byte // in order, without gaps, up to end
}

func newStreamSource(body io.Reader) *streamSource {
	return &streamSource{body: body, digest: sha256.New()}
}

func (s *streamSource) chunk(offset int64, limit int) ([]byte, error) {
	if kept, err := s.again(offset, limit); kept != nil || err != nil {
		return kept, err
	}
	for s.end < offset { // the server has these bytes from an earlier process
		if _, err := s.read(int(min(int64(limit), offset-s.end)), false); err != nil {
			return nil, err
		}
	}
	return s.read(limit, true)
}

// again returns bytes that were read before; nil if none are buffered at this offset.
func (s *streamSource) again(offset int64, limit int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset < s.base {
		return nil, &LostError{Wanted: offset, Kept: s.base}
	}
	at := s.base
	for _, piece := range s.kept {
		if offset < at+int64(len(piece)) {
			rest := piece[offset-at:]
			return rest[:min(len(rest), limit)], nil
		}
		at += int64(len(piece))
	}
	return nil, nil
}

func (s *streamSource) read(limit int, keep bool) ([]byte, error) {
	if s.eof {
		return nil, io.EOF
	}
	buffer, n, started := getBuffer(limit), 0, time.Now()
	for n < limit && (n == 0 || time.Since(started) < flushAfter) {
		m, err := s.body.Read(buffer[n:limit])
		n += m
		if errors.Is(err, io.EOF) {
			s.eof = true
			break
		}
		if err != nil {
			return nil, &BodyError{err}
		}
	}
	if n == 0 {
		putBuffer(buffer)
		return nil, io.EOF
	}
	piece := buffer[:n]
	if n < cap(buffer)/2 { // a slow sender must not pin a big buffer for a few bytes
		piece = append([]byte(nil), piece...)
		putBuffer(buffer)
	}
	s.digest.Write(piece)
	s.crc = crc32.Update(s.crc, castagnoli, piece)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end += int64(n)
	if !keep {
		putBuffer(piece)
		s.base = s.end
		return nil, nil
	}
	s.kept = append(s.kept, piece)
	return piece, nil
}

func (s *streamSource) written(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 && s.base+int64(len(s.kept[0])) <= offset {
		s.base += int64(len(s.kept[0]))
		putBuffer(s.kept[0])
		s.kept[0] = nil
		s.kept = s.kept[1:]
	}
}

func (s *streamSource) finish() error {
	for {
		s.written(s.end)
		if _, err := s.read(smallResult, false); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (s *streamSource) whole() (summary, bool) {
	return summary{s.end, s.crc, s.digest.Sum(nil)}, s.eof
}

// Buffers are reused whatever their size: nearly all of a server's chunks have one size.
var buffers sync.Pool

func getBuffer(size int) []byte {
	if b, ok := buffers.Get().(*[]byte); ok && cap(*b) >= size && cap(*b) <= 2*size {
		return (*b)[:size]
	}
	return make([]byte, size)
}

func putBuffer(b []byte) {
	if cap(b) >= smallResult {
		b = b[:cap(b)]
		buffers.Put(&b)
	}
}
