package rudder

import (
	"errors"
	"sync"
)

const leastTaken = 4 << 10 // what a file takes at least: so that many small ones count, too

var (
	errNeverFits = errors.New("it is larger than all of the space for shared files (rudder.shared_files_quota)")
	errNoSpace   = errors.New("the space for shared files is taken (rudder.shared_files_quota)")
)

// space counts what a folder holds, and what is on its way in. Safe for concurrent use.
type space struct {
	limit int64 // 0: none

	mu       sync.Mutex
	used     int64
	reserved int64
	changes  int
}

func taken(size int64) int64 { return (size + leastTaken - 1) / leastTaken * leastTaken }

// reserve keeps room for an upload and what describes it, until `release`.
func (s *space) reserve(size int64) (release func(), err error) {
	need := taken(size) + 2*leastTaken
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

// add notes a file that came, or, with a negative size, one that went.
func (s *space) add(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	if size < 0 {
		s.used -= taken(-size)
	} else {
		s.used += taken(size)
	}
}

// state gives what is used, and a number that changes with it.
func (s *space) state() (used int64, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.changes
}

// counted takes over a sum that was counted since `changes` was read, unless something changed meanwhile: others may
// remove files, too.
func (s *space) counted(sum int64, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == changes {
		s.used = sum
	}
}
