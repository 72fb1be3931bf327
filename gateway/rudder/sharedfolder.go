package rudder

import (
	"crypto"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// serveSharedFolder answers HEAD and GET shared-folder/<path>.
func (s *Server) serveSharedFolder(w http.ResponseWriter, r *http.Request, name string) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	climbs := strings.Contains(name, `\`) || slices.Contains(strings.Split(name, "/"), "..")
	switch {
	case r.Method == http.MethodGet && !climbs:
		s.download(w, r, name)
	case r.Method == http.MethodHead && err == nil && len(query["hash"]) <= 1 && len(query["hash_type"]) <= 1:
		if climbs {
			answer(w, http.StatusBadRequest, "the path leaves the shared folder")
			return
		}
		s.compareFolder(w, r, name, query)
	default:
		notFound(w)
	}
}

// openShared opens a file of the folder; a link cannot leave it, and a pipe does not block.
func (s *Server) openShared(name string) (*os.File, error) {
	root, err := os.OpenRoot(s.config.SharedFolder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(path.Clean("./"+name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// absent reports whether a file does not exist, which includes impossible names.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EINVAL) ||
		strings.Contains(err.Error(), "escapes")
}

// compareFolder answers 304 if the file has the hash, 200 otherwise.
func (s *Server) compareFolder(w http.ResponseWriter, r *http.Request, name string, query url.Values) {
	file, err := s.openShared(name)
	if err != nil && absent(err) {
		notFound(w)
		return
	}
	if err != nil {
		s.log.Warn("shared folder: cannot read a file", "file", name, "error", err)
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return
	}
	defer file.Close()
	algorithm, known := algorithms[query.Get("hash_type")]
	if !query.Has("hash_type") {
		algorithm, known = crypto.SHA256, true
	}
	wanted, err := hex.DecodeString(query.Get("hash"))
	if !known || err != nil || len(wanted) != 0 && len(wanted) != algorithm.Size() {
		answer(w, http.StatusBadRequest, "the hash is malformed, or its type is neither sha256 nor sha512")
		return
	}
	s.answerCompared(w, file, algorithm, wanted)
}

func (s *Server) answerCompared(w http.ResponseWriter, file *os.File, algorithm crypto.Hash, wanted []byte) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return
	}
	if len(wanted) == 0 {
		w.WriteHeader(http.StatusOK)
		return
	}
	digest := algorithm.New()
	if _, err := io.Copy(digest, file); err != nil {
		s.log.Warn("shared folder: cannot read a file", "file", file.Name(), "error", err)
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return
	}
	code := http.StatusOK
	if slices.Equal(digest.Sum(nil), wanted) {
		code = http.StatusNotModified
	}
	w.WriteHeader(code)
}

// download sends a file, with ranges and dates as web servers do; for a folder its index.html.
func (s *Server) download(w http.ResponseWriter, r *http.Request, name string) {
	for range 2 {
		file, err := s.openShared(name)
		if err != nil {
			if !absent(err) {
				s.log.Warn("shared folder: cannot read a file", "file", name, "error", err)
			}
			break
		}
		defer file.Close()
		info, err := file.Stat()
		if err == nil && info.Mode().IsRegular() {
			http.ServeContent(&slowWriter{w, http.NewResponseController(w), s.config.ClientSilence}, r, name, info.ModTime(), file)
			return
		}
		name = path.Join(name, "index.html")
	}
	notFound(w)
}

// slowWriter disconnects a client that does not read.
type slowWriter struct {
	http.ResponseWriter
	client  *http.ResponseController
	silence time.Duration
}

func (s *slowWriter) Write(content []byte) (int, error) {
	_ = s.client.SetWriteDeadline(time.Now().Add(s.silence))
	return s.ResponseWriter.Write(content)
}
