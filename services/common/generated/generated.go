// Package generated is shared by the generators of checked-in files.
package generated

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Main writes the files of a generator below the folder in which it runs, and ends the program if it fails.
func Main(files func(root string) (map[string]string, error)) {
	if err := write(".", files); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(root string, files func(root string) (map[string]string, error)) error {
	texts, err := files(root)
	if err != nil {
		return err
	}
	for name, text := range texts {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Outdated returns the names of the files whose content differs from their text.
func Outdated(root string, files map[string]string) []string {
	var names []string
	for name, want := range files {
		if got, _ := os.ReadFile(filepath.Join(root, name)); string(got) != want {
			names = append(names, name)
		}
	}
	return names
}

// ReadYAML reads a file of a table. Unknown fields are errors.
func ReadYAML(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
