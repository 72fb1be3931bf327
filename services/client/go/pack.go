package muster

import (
	"archive/tar"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// temporaryPrefix begins the names of incomplete archives.
const temporaryPrefix = "." + archiveName + "-"

// temporaries returns the names of the incomplete archives in a folder.
func temporaries(folder string) (all []string) {
	entries, _ := os.ReadDir(folder) // the packing reports why it cannot read the folder
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), temporaryPrefix) && entry.Type().IsRegular() {
			all = append(all, entry.Name())
		}
	}
	return all
}

// pack writes a folder of the results as results.tar.gz into itself, as old sidecars do, and opens the archive. The
// archive does not contain itself. An archive newer than the done file was made by an earlier process: the same bytes
// let its upload resume.
func pack(results *os.Root, name string) (*os.File, error) {
	doneInfo, err := results.Stat("done")
	if err != nil {
		return nil, err
	}
	folder, err := results.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("cannot pack %s: %w", name, err)
	}
	defer folder.Close()
	if info, err := folder.Lstat(archiveName); err != nil || !info.Mode().IsRegular() || !info.ModTime().After(doneInfo.ModTime()) {
		if err := writeArchive(folder); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", folder.Name(), err)
		}
	}
	archive, info, err := openNow(folder, archiveName)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.Join(errors.New("the archive is not a regular file"), archive.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot pack %s: %w", folder.Name(), err)
	}
	return archive, nil
}

func writeArchive(folder *os.Root) error {
	// An earlier process that was killed may have left its incomplete archive.
	for _, old := range temporaries(folder.Name()) {
		if err := folder.Remove(old); err != nil {
			return err
		}
	}
	// The name must not exist: a link that the plugin put there is not followed.
	temporary := temporaryPrefix + rand.Text()
	file, err := folder.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(file)
	tape := tar.NewWriter(zip)
	err = errors.Join(addAll(tape, folder, archiveName, temporary), tape.Close(), zip.Close(), file.Sync(), file.Close())
	if err == nil {
		err = folder.Rename(temporary, archiveName)
	}
	if err != nil {
		return errors.Join(err, folder.Remove(temporary))
	}
	return nil
}

func addAll(tape *tar.Writer, folder *os.Root, but ...string) error {
	return filepath.WalkDir(folder.Name(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder.Name() {
			return err
		}
		name, err := filepath.Rel(folder.Name(), path)
		if err != nil || slices.Contains(but, name) {
			return err
		}
		info, err := entry.Info()
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
		content, _, err := openNow(folder, name)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(tape, content)
		return err
	})
}
