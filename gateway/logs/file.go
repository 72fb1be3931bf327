package logs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// The size at which a file is moved to .1, the maximum number of files, and the wait before the next try.
const (
	maxFileBytes = 64 << 20
	maxFiles     = 4
	rotateAgain  = time.Minute // after a rotation that failed
)

// File is a log file of limited size. Not safe for concurrent use: the logger's lock guards it.
type File struct {
	path    string
	largest int64
	file    *os.File
	size    int64
	retry   time.Time // after a rotation that failed
}

// OpenFile opens a file for appending.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, largest: maxFileBytes}
	return f, f.open()
}

func (f *File) open() error {
	file, err := openToAppend(f.path)
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

func openToAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
}

// Write implements io.Writer; it gets one line per call.
func (f *File) Write(line []byte) (int, error) {
	if f.size > 0 && f.size+int64(len(line)) > f.largest && !time.Now().Before(f.retry) {
		if err := f.rotate(); err != nil {
			f.retry = time.Now().Add(rotateAgain)
			fmt.Fprintf(os.Stderr, "log.file: cannot rotate %s, so it grows: %v\n", f.path, err)
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// rotate opens a new file, increments the number of each old one, and deletes the oldest.
func (f *File) rotate() error {
	next := f.path + ".new" // opened first: without it the files would move away one after another
	file, err := openToAppend(next)
	if err != nil {
		return err
	}
	if err = f.shift(); err == nil {
		err = os.Rename(next, f.path)
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(next))
	}
	old := f.file
	f.file, f.size = file, 0
	return old.Close()
}

// shift increments the number of each file.
func (f *File) shift() error {
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
	return nil
}

// Close implements io.Closer.
func (f *File) Close() error { return f.file.Close() }
