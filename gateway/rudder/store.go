package rudder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster.example/gateway/config"
)

const (
	metadataSuffix = ".metadata"
	shareSuffix    = ".medata"   // as Rudder's first design spells it
	incoming       = ".incoming" // uploads that are not whole yet
	folderMode     = 0o750
	fileMode       = 0o640
)

// store keeps shared files where agents fetch them by their own protocol, each with what describes it beside it. A file
// is there as a whole or not at all. Safe for concurrent use.
type store struct {
	root   *os.Root
	log    *slog.Logger
	suffix string // of what describes a file
	// expiry reads when a file ends, in Unix seconds; 0: never.
	expiry func(described io.Reader) (int64, error)
	space  *space
	mu     sync.Mutex // held while the two files of an id change
}

// openStore makes the folder, and removes what an earlier process left unfinished.
func openStore(c *config.Rudder, log *slog.Logger) (*store, error) {
	s := &store{log: log, suffix: metadataSuffix, expiry: expiryOfBlock, space: &space{limit: c.SharedFilesQuota}}
	if c.Dialect == "extended" {
		s.suffix, s.expiry = shareSuffix, expiryOfShare
	}
	err := os.MkdirAll(c.FilesFolder(), folderMode)
	if err == nil {
		s.root, err = os.OpenRoot(c.FilesFolder())
	}
	if err == nil {
		err = errors.Join(s.root.RemoveAll(incoming), s.root.MkdirAll(incoming, 0o700))
	}
	if err != nil {
		return nil, fmt.Errorf("rudder.shared_files: %w", err)
	}
	s.walk(context.Background(), func(string) {})
	return s, nil
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

// keep makes an upload the shared file at a path, with a text that describes it. The content is in place before the
// text says so: after a crash between the two a HEAD does not find it, and it is sent again.
func (s *store) keep(to string, file *os.File, name, text string) error {
	described, describedName, err := s.create()
	if err != nil {
		return err
	}
	defer s.discard(described, describedName)
	if _, err := described.WriteString(text); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), described.Sync(), file.Close(), described.Close()); err != nil {
		return err
	}
	if err := s.root.MkdirAll(path.Dir(to), folderMode); err != nil {
		return err
	}
	if err := s.replace(name, describedName, to); err != nil {
		return err
	}
	return s.syncFolders(path.Dir(to))
}

// replace puts content and what describes it in place, so that no other upload or sweep comes between them.
func (s *store) replace(content, described, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, move := range [][2]string{{content, to}, {described, to + s.suffix}} {
		before, after := s.size(move[1]), s.size(move[0])
		if err := s.root.Rename(move[0], move[1]); err != nil {
			return err
		}
		s.space.add(-before)
		s.space.add(after)
	}
	return nil
}

// size is that of a file, 0 if it is not there.
func (s *store) size(name string) int64 {
	info, err := s.root.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
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

// described opens what describes a file.
func (s *store) described(file string) (*os.File, error) { return s.root.Open(file + s.suffix) }

// describe reads the header block of a shared file of the strict dialect.
func (s *store) describe(file string) (*metadata, error) {
	described, err := s.described(file)
	if err != nil {
		return nil, err
	}
	defer described.Close()
	return readMetadata(described)
}

// expiryOfBlock is the expiry that a header block has.
func expiryOfBlock(described io.Reader) (int64, error) {
	m, err := readMetadata(described)
	if err == nil && m.values["expires"] == "" {
		err = errors.New("it does not say when it expires")
	}
	if err != nil {
		return 0, err
	}
	return max(m.expires, 1), nil
}

// sweep removes what has expired. What does not say when it expires, or cannot be read, is kept.
func (s *store) sweep(ctx context.Context, now time.Time) {
	s.walk(ctx, func(name string) {
		if file, found := strings.CutSuffix(name, s.suffix); found {
			s.expire(file, now)
		}
	})
}

// walk visits all files but unfinished ones, and counts what they take.
func (s *store) walk(ctx context.Context, visit func(name string)) {
	sum, whole := int64(0), true
	_, changes := s.space.state()
	_ = fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			whole = false
			return fs.SkipAll
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case err != nil:
			whole = false
			s.log.Warn("shared files: a file cannot be looked at", "file", name, "error", err)
			return nil
		case entry.IsDir() && name == incoming:
			return fs.SkipDir
		case entry.Type().IsRegular():
			if info, err := entry.Info(); err == nil {
				sum += taken(info.Size())
			}
			visit(name)
		}
		return nil
	})
	if whole {
		s.space.counted(sum, changes)
	}
}

// expire removes a file if its time is over. The content goes first: a crash in between leaves what the next
// sweep finds.
func (s *store) expire(name string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	described, err := s.described(name)
	if err != nil {
		return // it is gone already
	}
	ends, err := s.expiry(described)
	described.Close()
	if err != nil {
		s.log.Warn("a shared file does not say when it expires and is kept", "file", name, "error", err)
		return
	}
	if ends == 0 || ends >= now.Unix() {
		return
	}
	if err = s.remove(name); err == nil {
		err = s.remove(name + s.suffix)
	}
	if err != nil {
		s.log.Warn("an expired shared file stays", "file", name, "error", err)
		return
	}
	s.log.Info("an expired shared file was removed", "file", name)
}

// remove takes away a file, if it is there.
func (s *store) remove(name string) error {
	size := s.size(name)
	err := s.root.Remove(name)
	if err == nil {
		s.space.add(-size)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
