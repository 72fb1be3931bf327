package logs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"muster.example/gateway/limits"
)

// The size at which a file is moved to .1, the maximum number of files, and the wait before the next try.
const (
	rotateAgain = time.Minute // after a rotation that failed
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
	f := &File{path: path, largest: limits.LogFile}
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

// rotate begins a new file, increments the number of each old one, and deletes the oldest. After an error the old
// files have their names: a rotation that fails again and again deletes nothing.
func (f *File) rotate() error {
	next, last := f.path+".new", f.path+".last"
	file, err := openToAppend(next)
	if err != nil {
		return err
	}
	if err = rename(f.path, last); err == nil {
		if err = os.Rename(next, f.path); err != nil {
			err = errors.Join(err, rename(last, f.path))
		}
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(next))
	}
	_ = f.file.Close() // every line is written already
	f.file, f.size = file, 0
	if err := f.shift(last); err != nil {
		fmt.Fprintf(os.Stderr, "log.file: cannot number the old files of %s: %v\n", f.path, err)
	}
	return nil
}

// shift increments the number of each old file; `last` becomes the first.
func (f *File) shift(last string) error {
	for i := limits.LogFiles - 1; i > 1; i-- {
		if err := rename(f.path+"."+strconv.Itoa(i-1), f.path+"."+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return rename(last, f.path+".1")
}

// rename is os.Rename, for a file that may be missing.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// Close implements io.Closer.
func (f *File) Close() error { return f.file.Close() }
