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

// source provides the bytes of a delivery in pieces. One goroutine calls chunk and finish, another one
// written.
type source interface {
	// chunk returns 1 to limit bytes from an offset on; io.EOF at the end. It waits for the bytes.
	chunk(offset int64, limit int) (piece, error)
	// written states that bytes before the offset are not needed any more.
	written(offset int64)
	// finish reads the rest without storing it.
	finish() error
	// whole describes all bytes; false before the end was read.
	whole() (summary, bool)
	// addDigest makes whole compute the SHA-256, if no byte was read yet.
	addDigest()
}

// piece is a part of a delivery.
type piece struct {
	data   []byte
	crc32c uint32
	// lasting: the data do not change before written() passes them; otherwise before the next call.
	lasting bool
}

type summary struct {
	size   int64
	crc32c uint32
	sha256 []byte // empty if it was not computed
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

func (s *fileSource) chunk(offset int64, limit int) (piece, error) {
	n := min(int64(limit), s.sum.size-offset)
	if n <= 0 {
		return piece{}, io.EOF
	}
	if int64(cap(s.buffer)) < n {
		s.buffer = make([]byte, n)
	}
	buffer := s.buffer[:n]
	if _, err := s.file.ReadAt(buffer, offset); err != nil {
		return piece{}, &BodyError{err}
	}
	return piece{data: buffer, crc32c: crc32.Checksum(buffer, castagnoli)}, nil
}

func (s *fileSource) written(int64)          {}
func (s *fileSource) finish() error          { return nil }
func (s *fileSource) whole() (summary, bool) { return s.sum, true }
func (s *fileSource) addDigest()             {}

// flushAfter bounds how long bytes of a slow sender wait for more.
const flushAfter = time.Second

// streamSource is read once; it buffers what the server has not written yet.
type streamSource struct {
	body   io.Reader
	digest hash.Hash // nil: not required
	crc    uint32
	end    int64 // bytes read
	eof    bool

	mu   sync.Mutex
	base int64   // the offset of the first buffered byte
	kept []piece // in order, without gaps, up to end
}

func newStreamSource(body io.Reader) *streamSource { return &streamSource{body: body} }

func (s *streamSource) addDigest() {
	if s.end == 0 {
		s.digest = sha256.New()
	}
}

func (s *streamSource) chunk(offset int64, limit int) (piece, error) {
	if kept, err := s.again(offset, limit); kept.data != nil || err != nil {
		return kept, err
	}
	for s.end < offset { // the server has these bytes from an earlier process
		if _, err := s.read(int(min(int64(limit), offset-s.end)), false); err != nil {
			return piece{}, err
		}
	}
	return s.read(limit, true)
}

// again returns bytes that were read before; none if none are buffered at this offset.
func (s *streamSource) again(offset int64, limit int) (piece, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset < s.base {
		return piece{}, &LostError{Wanted: offset, Kept: s.base}
	}
	at := s.base
	for _, kept := range s.kept {
		if offset < at+int64(len(kept.data)) {
			rest := kept.data[offset-at:]
			if len(rest) == len(kept.data) && len(rest) <= limit {
				return kept, nil
			}
			rest = rest[:min(len(rest), limit)]
			return piece{rest, crc32.Checksum(rest, castagnoli), true}, nil
		}
		at += int64(len(kept.data))
	}
	return piece{}, nil
}

func (s *streamSource) read(limit int, keep bool) (piece, error) {
	if s.eof {
		return piece{}, io.EOF
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
			return piece{}, &BodyError{err}
		}
	}
	if n == 0 {
		putBuffer(buffer)
		return piece{}, io.EOF
	}
	data := buffer[:n]
	if n < cap(buffer)/2 { // a slow sender must not pin a big buffer for a few bytes
		data = append([]byte(nil), data...)
		putBuffer(buffer)
	}
	if s.digest != nil {
		s.digest.Write(data)
	}
	one := piece{data, crc32.Checksum(data, castagnoli), true}
	s.crc = combine(s.crc, one.crc32c, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end += int64(n)
	if !keep {
		putBuffer(data)
		s.base = s.end
		return piece{}, nil
	}
	s.kept = append(s.kept, one)
	return one, nil
}

func (s *streamSource) written(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 && s.base+int64(len(s.kept[0].data)) <= offset {
		s.base += int64(len(s.kept[0].data))
		putBuffer(s.kept[0].data)
		s.kept[0] = piece{}
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
	if !s.eof {
		return summary{}, false
	}
	sum := summary{size: s.end, crc32c: s.crc}
	if s.digest != nil {
		sum.sha256 = s.digest.Sum(nil)
	}
	return sum, true
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
