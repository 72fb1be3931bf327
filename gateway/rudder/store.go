package rudder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	metadataSuffix = ".metadata"
	incoming       = ".incoming" // uploads that are not whole yet
	folderMode     = 0o750
	fileMode       = 0o640
)

// store keeps shared files where agents fetch them by their own protocol: <target>/files/<source>/<file id>,
// with the header block beside it. A file is there as a whole or not at all. Safe for concurrent use.
type store struct {
	root *os.Root
	log  *slog.Logger
	mu   sync.Mutex // held while the two files of an id change
}

// openStore makes the folder, and removes what an earlier process left unfinished.
func openStore(folder string, log *slog.Logger) (*store, error) {
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return nil, fmt.Errorf("rudder.shared_files: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err == nil {
		if err = root.RemoveAll(incoming); err == nil {
			err = root.MkdirAll(incoming, 0o700)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rudder.shared_files: %w", err)
	}
	return &store{root: root, log: log}, nil
}

func (s *store) close() { s.root.Close() }

// sharedID names a shared file.
type sharedID struct{ target, source, file string }

// valid tells whether all parts may be names of files. The file's has room for the suffix, and does not have it.
func (id sharedID) valid() bool {
	return isName(id.target) && isName(id.source) && isName(id.file+metadataSuffix) && isName(id.file) &&
		!strings.EqualFold(path.Ext(id.file), metadataSuffix)
}

func (id sharedID) path() string { return path.Join(id.target, "files", id.source, id.file) }

// create opens a file for an upload that is not whole yet.
func (s *store) create() (*os.File, string, error) {
	name := path.Join(incoming, strconv.FormatUint(rand.Uint64(), 16))
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	return file, name, err
}

// discard removes an upload that comes to nothing.
func (s *store) discard(file *os.File, name string) {
	file.Close()
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("an unfinished shared file stays", "file", name, "error", err)
	}
}

// keep makes an upload the shared file of that id. The content is in place before the header block says so:
// after a crash between the two a HEAD does not find it, and it is sent again.
func (s *store) keep(id sharedID, file *os.File, name string, m *metadata) error {
	described, describedName, err := s.create()
	if err != nil {
		return err
	}
	defer s.discard(described, describedName)
	if _, err := described.WriteString(m.text()); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), described.Sync(), file.Close(), described.Close()); err != nil {
		return err
	}
	to := id.path()
	if err := s.root.MkdirAll(path.Dir(to), folderMode); err != nil {
		return err
	}
	if err := s.replace(name, describedName, to); err != nil {
		return err
	}
	return s.syncFolders(path.Dir(to))
}

// replace puts content and header block in place, so that no other upload or sweep comes between them.
func (s *store) replace(content, described, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.root.Rename(content, to); err != nil {
		return err
	}
	return s.root.Rename(described, to+metadataSuffix)
}

// syncFolders makes names durable, up to the store's own folder.
func (s *store) syncFolders(name string) error {
	for {
		folder, err := s.root.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		name = path.Dir(name)
	}
}

// describe reads the header block of a shared file.
func (s *store) describe(file string) (*metadata, error) {
	described, err := s.root.Open(file + metadataSuffix)
	if err != nil {
		return nil, err
	}
	defer described.Close()
	return readMetadata(described)
}

// sweepAlways removes what has expired, at once and again after each interval.
func (s *store) sweepAlways(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		s.sweep(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sweep removes what has expired. What does not say when it expires, or cannot be read, is kept.
func (s *store) sweep(ctx context.Context, now time.Time) {
	_ = fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			s.log.Warn("shared files: cannot look for expired ones", "file", name, "error", err)
			return nil
		case entry.IsDir() && name == incoming:
			return fs.SkipDir
		case entry.Type().IsRegular() && strings.HasSuffix(name, metadataSuffix):
			s.expire(strings.TrimSuffix(name, metadataSuffix), now)
		}
		return nil
	})
}

// expire removes a file if its time is over. The content goes first: a crash in between leaves what the next
// sweep finds.
func (s *store) expire(name string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.describe(name)
	if err != nil || m.expires == 0 && m.values["expires"] == "" {
		s.log.Warn("a shared file does not say when it expires and is kept", "file", name, "error", err)
		return
	}
	if m.expires >= now.Unix() {
		return
	}
	err = s.root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.root.Remove(name + metadataSuffix)
	}
	if err != nil {
		s.log.Warn("an expired shared file stays", "file", name, "error", err)
		return
	}
	s.log.Info("an expired shared file was removed", "file", name)
}
