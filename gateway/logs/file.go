package logs

import (
	"fmt"
	"os"
	"strconv"
)

// The size at which a file is moved to .1, and the maximum number of files.
const (
	maxFileBytes = 64 << 20
	maxFiles     = 4
)

// File is a log file of limited size. Not safe for concurrent use: the logger's lock guards it.
type File struct {
	path    string
	largest int64
	file    *os.File
	size    int64
}

// OpenFile opens a file for appending.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, largest: maxFileBytes}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("log.file: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("log.file: %w", err)
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements io.Writer; it gets one line per call.
func (f *File) Write(line []byte) (int, error) {
	if f.size > 0 && f.size+int64(len(line)) > f.largest {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// rotate increments the number of each file, deletes the oldest, and opens a new one.
func (f *File) rotate() error {
	for i := maxFiles - 1; i > 0; i-- {
		older := f.path + "." + strconv.Itoa(i)
		newer := f.path
		if i > 1 {
			newer += "." + strconv.Itoa(i-1)
		}
		if err := os.Rename(newer, older); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	old := f.file
	if err := f.open(); err != nil {
		return err
	}
	return old.Close()
}

// Close implements io.Closer.
func (f *File) Close() error { return f.file.Close() }
