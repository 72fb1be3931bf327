package muster

import (
	"os"
	"path/filepath"
	"testing"
)

// A done file is refused, or names the result in its folder, whatever links and steps it contains.
func FuzzDoneFileStaysInResultsFolder(f *testing.F) {
	parent := f.TempDir()
	folder := filepath.Join(parent, "results")
	for _, err := range []error{os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "file"), []byte("result"), 0o600),
		os.WriteFile(filepath.Join(parent, "secret"), nil, 0o600), os.Symlink("../secret", filepath.Join(folder, "link"))} {
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, content := range []string{"file\n", ".", folder + "/file", "../secret", "link", "../results/./file", "file/", "", " \n", "\x00", "fi\xffle", "/etc/passwd"} {
		f.Add([]byte(content))
	}
	done := filepath.Join(folder, "done")
	client := &Client{config: &Config{ResultsDir: folder, MaxResultBytes: 1 << 20}}
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(done, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := client.openResult(done)
		if err != nil {
			return
		}
		defer file.Close()
		path := filepath.Clean(file.Name())
		if path == filepath.Join(folder, archiveName) { // of the folder itself
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		} else if path != filepath.Join(folder, "file") && path != done {
			t.Errorf("%q names %q", content, path)
		}
	})
}
