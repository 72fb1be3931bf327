package muster

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// temporaryPrefix begins the names of incomplete archives.
const temporaryPrefix = "." + archiveName + "-"

// temporaries returns the incomplete archives in a folder.
func temporaries(folder string) (all []string) {
	entries, _ := os.ReadDir(folder) // the packing reports why it cannot read the folder
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporaryPrefix) && entry.Type().IsRegular() {
			all = append(all, filepath.Join(folder, entry.Name()))
		}
	}
	return all
}

// pack writes a folder as results.tar.gz into itself, as old sidecars do, and returns the archive's path. The
// archive does not contain itself. An archive newer than the done file was made by an earlier process: the
// same bytes let its upload resume.
func pack(folder, done string) (string, error) {
	archive := filepath.Join(folder, archiveName)
	doneInfo, err := os.Stat(done)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(archive); err == nil && info.ModTime().After(doneInfo.ModTime()) {
		return archive, nil
	}
	// An earlier process that was killed may have left its incomplete archive.
	for _, old := range temporaries(folder) {
		if err := os.Remove(old); err != nil {
			return "", fmt.Errorf("cannot pack %s: %w", folder, err)
		}
	}
	file, err := os.CreateTemp(folder, temporaryPrefix+"*")
	if err != nil {
		return "", fmt.Errorf("cannot pack %s: %w", folder, err)
	}
	zip := gzip.NewWriter(file)
	tape := tar.NewWriter(zip)
	err = errors.Join(addAll(tape, folder, archive, file.Name()), tape.Close(), zip.Close(), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), archive)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot pack %s: %w", folder, err), os.Remove(file.Name()))
	}
	return archive, nil
}

func addAll(tape *tar.Writer, folder string, but ...string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder || path == but[0] || path == but[1] {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		link := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		case !info.IsDir() && !info.Mode().IsRegular():
			return nil // sockets, pipes, devices
		}
		header, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		header.Name = filepath.ToSlash(name)
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
		if err := tape.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(tape, content)
		return err
	})
}
