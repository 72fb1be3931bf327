package rudder

import (
	"errors"
	"sync"

	"muster.example/gateway/limits"
)

const minSize = 4 << 10 // the minimum that a file counts for

var (
	errNeverFits     = errors.New("the file is larger than the space for shared files (rudder.shared_files_quota)")
	errNoSpace       = errors.New("the space for shared files is exhausted (rudder.shared_files_quota)")
	errSourceNoSpace = errors.New("the source has used its part of the space for shared files (half of rudder.shared_files_quota)")
)

// space counts the bytes of a folder, including incoming uploads: in all, and by the source of the files. Safe for
// concurrent use.
type space struct {
	limit    int64 // 0: no limit
	ofSource int64 // the part of the limit that one source may use

	mu       sync.Mutex
	used     int64
	reserved int64
	stored   map[string]int64 // `used` by source; the files of the spool have its name
	held     map[string]int64 // by source: incoming uploads, and those in transit to the policy server
	changes  int
}

// newSpace creates the space of an empty folder. One source may use its part of the limit, but at least what the largest
// upload needs.
func newSpace(limit, largest int64) *space {
	return &space{limit: limit, ofSource: max(limit/100*int64(limits.QuotaOfSource), needOf(largest)),
		stored: map[string]int64{}, held: map[string]int64{}}
}

func roundedSize(size int64) int64 { return (size + minSize - 1) / minSize * minSize }

// needOf returns the space for a file with its description, which may be replaced.
func needOf(size int64) int64 { return roundedSize(size) + 2*minSize }

// reserve reserves space for an upload of a source and its description, until `release`.
func (s *space) reserve(source string, size int64) (release func(), err error) {
	need := needOf(size)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.limit == 0:
	case size > s.limit || need > s.limit:
		return nil, errNeverFits
	case s.used+s.reserved > s.limit-need:
		return nil, errNoSpace
	case s.stored[source]+s.held[source] > s.ofSource-need:
		return nil, errSourceNoSpace
	}
	s.reserved += need
	change(s.held, source, need)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reserved -= need
		change(s.held, source, -need)
	}, nil
}

// hold adds an upload of a source that is in transit, or subtracts one with a negative size.
func (s *space) hold(source string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.held, source, size)
}

// add adds the size of a new file of a source, or the negative size of a removed one.
func (s *space) add(source string, size int64) {
	rounded := roundedSize(size)
	if size < 0 {
		rounded = -roundedSize(-size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	s.used += rounded
	change(s.stored, source, rounded)
}

// change adds to a sum, and removes it if it becomes zero.
func change(sums map[string]int64, source string, size int64) {
	if sums[source] += size; sums[source] == 0 {
		delete(sums, source)
	}
}

// state returns the used bytes, and a number that changes with them.
func (s *space) state() (used int64, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.changes
}

// counted sets the sums by source that were counted since `changes` was read, unless they have changed since: other
// programs may remove files, too.
func (s *space) counted(sums map[string]int64, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes != changes {
		return
	}
	s.stored, s.used = sums, 0
	for _, size := range sums {
		s.used += size
	}
}
