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
	incoming       = ".incoming" // incomplete uploads
	folderMode     = 0o750
	fileMode       = 0o640
)

// store keeps shared files where agents fetch them by their own protocol, each with its description beside it. A file
// is visible completely or not at all. Safe for concurrent use.
type store struct {
	root   *os.Root
	log    *slog.Logger
	suffix string // of the description of a file
	// expiry reads when a file expires, in Unix seconds; 0: never.
	expiry func(described io.Reader) (int64, error)
	space  *space
	mu     sync.Mutex // held while the two files of an id change
}

// openStore creates the folder, and removes incomplete uploads of an earlier process.
func openStore(c *config.Rudder, log *slog.Logger) (*store, error) {
	s := &store{log: log, suffix: metadataSuffix, expiry: expiryOfBlock, space: newSpace(c.SharedFilesQuota, c.MaxBodySize)}
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

// valid reports whether all parts may be names of files. The file's name must leave space for the suffix, and must not
// have it.
func (id sharedID) valid() bool {
	return isName(id.target) && isName(id.source) && isName(id.file+metadataSuffix) && isName(id.file) &&
		!strings.EqualFold(path.Ext(id.file), metadataSuffix)
}

func (id sharedID) path() string { return path.Join(id.target, "files", id.source, id.file) }

// create opens a file for an incomplete upload.
func (s *store) create() (*os.File, string, error) {
	name := path.Join(incoming, strconv.FormatUint(rand.Uint64(), 16))
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	return file, name, err
}

// discard removes an incomplete upload.
func (s *store) discard(file *os.File, name string) {
	file.Close()
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot remove an incomplete shared file", "file", name, "error", err)
	}
}

// keep makes an upload the shared file at a path, with its description. The content is written before the description:
// after a crash between the two, a HEAD does not find the file, and it is sent again.
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

// replace renames content and description under the lock, so that no other upload or sweep comes between them.
func (s *store) replace(content, described, to string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, move := range [][2]string{{content, to}, {described, to + s.suffix}} {
		before, after := s.size(move[1]), s.size(move[0])
		if err := s.root.Rename(move[0], move[1]); err != nil {
			return err
		}
		s.count(to, -before)
		s.count(to, after)
	}
	return nil
}

// count adds the size of a new file, or the negative size of a removed one, to the space of its source: files are in a
// folder of their source.
func (s *store) count(name string, size int64) { s.space.add(sourceOf(name), size) }

func sourceOf(name string) string { return path.Base(path.Dir(name)) }

// size returns the size of a file, 0 if it does not exist.
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

// described opens the description of a file.
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

// expiryOfBlock reads the expiry in a header block.
func expiryOfBlock(described io.Reader) (int64, error) {
	m, err := readMetadata(described)
	if err == nil && m.values["expires"] == "" {
		err = errors.New("no expiry")
	}
	if err != nil {
		return 0, err
	}
	return max(m.expires, 1), nil
}

// sweep removes expired files. A file without a readable expiry is kept.
func (s *store) sweep(ctx context.Context, now time.Time) {
	s.walk(ctx, func(name string) {
		if file, found := strings.CutSuffix(name, s.suffix); found {
			s.expire(file, now)
		}
	})
}

// walk visits all files except incomplete ones, and counts their space.
func (s *store) walk(ctx context.Context, visit func(name string)) {
	sums, whole := map[string]int64{}, true
	_, changes := s.space.state()
	_ = fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			whole = false
			return fs.SkipAll
		case errors.Is(err, fs.ErrNotExist): // removed by another program
			return nil
		case err != nil:
			whole = false
			s.log.Warn("shared files: cannot read a file", "file", name, "error", err)
			return nil
		case entry.IsDir() && name == incoming:
			return fs.SkipDir
		case entry.Type().IsRegular():
			if info, err := entry.Info(); err == nil {
				sums[sourceOf(name)] += roundedSize(info.Size())
			}
			visit(name)
		}
		return nil
	})
	if whole {
		s.space.counted(sums, changes)
	}
}

// expire removes a file if it has expired. The content goes first: after a crash in between, the next sweep finds the
// description.
func (s *store) expire(name string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	described, err := s.described(name)
	if err != nil {
		return // already removed
	}
	ends, err := s.expiry(described)
	described.Close()
	if err != nil {
		s.log.Warn("shared file without an expiry is kept", "file", name, "error", err)
		return
	}
	if ends == 0 || ends >= now.Unix() {
		return
	}
	if err = s.remove(name); err == nil {
		err = s.remove(name + s.suffix)
	}
	if err != nil {
		s.log.Warn("cannot remove an expired shared file", "file", name, "error", err)
		return
	}
	s.log.Info("expired shared file removed", "file", name)
}

// remove deletes a file, if it exists.
func (s *store) remove(name string) error {
	size := s.size(name)
	err := s.root.Remove(name)
	if err == nil {
		s.count(name, -size)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
