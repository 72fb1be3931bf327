package rudder

import (
	"errors"
	"sync"
)

const minSize = 4 << 10 // the minimum that a file counts for

var (
	errNeverFits = errors.New("the file is larger than the space for shared files (rudder.shared_files_quota)")
	errNoSpace   = errors.New("the space for shared files is exhausted (rudder.shared_files_quota)")
)

// space counts the bytes of a folder, including incoming uploads. Safe for concurrent use.
type space struct {
	limit int64 // 0: no limit

	mu       sync.Mutex
	used     int64
	reserved int64
	changes  int
}

func roundedSize(size int64) int64 { return (size + minSize - 1) / minSize * minSize }

// reserve reserves space for an upload and its description, until `release`.
func (s *space) reserve(size int64) (release func(), err error) {
	need := roundedSize(size) + 2*minSize
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.limit == 0:
	case size > s.limit || need > s.limit:
		return nil, errNeverFits
	case s.used+s.reserved > s.limit-need:
		return nil, errNoSpace
	}
	s.reserved += need
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reserved -= need
	}, nil
}

// add adds the size of a new file, or the negative size of a removed one.
func (s *space) add(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if size < 0 {
		s.used -= roundedSize(-size)
	} else {
		s.used += roundedSize(size)
	}
}

// state returns the used bytes, and a number that changes with them.
func (s *space) state() (used int64, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.changes
}

// counted sets a sum that was counted since `changes` was read, unless it has changed since: other programs may remove
// files, too.
func (s *space) counted(sum int64, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == changes {
		s.used = sum
	}
}
