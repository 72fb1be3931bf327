package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// keptResult is the result of a part of testing/nightly: lines "commit", "date", "machine" and "seconds" with their
// values, and then the report of the part.
type keptResult struct {
	commit, date, machine string
	seconds               time.Duration
	tally                 tally
}

// readKept parses the file of a part.
func readKept(text string) (*keptResult, error) {
	r, counted := &keptResult{}, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, " ")
		var failed int
		switch name {
		case "commit":
			r.commit = value
		case "date":
			r.date = value
		case "machine":
			r.machine = value
		case "seconds":
			if _, err := fmt.Sscanf(value, "%d", &r.seconds); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			r.seconds *= time.Second
		case "FAILED":
			r.tally.fail("%s", value)
		}
		if n, _ := fmt.Sscanf(line, "%d skipped", &failed); n == 1 && strings.HasSuffix(line, " skipped") {
			r.tally.skipped = failed
		}
		counted = false // only the last line counts
		if n, _ := fmt.Sscanf(line, "%d passed, %d failed", &r.tally.passed, &failed); n == 2 {
			counted = failed == len(r.tally.failures)
		}
	}
	if r.commit == "" || !counted {
		return nil, errors.New("it does not end with its counts")
	}
	return r, nil
}

// kept prints the result of each part, and adds those that ran at the commit.
func (t *tally) kept(folder, commit string, parts []string) error {
	var others []string
	for _, part := range parts {
		text, err := os.ReadFile(filepath.Join(folder, part))
		if errors.Is(err, fs.ErrNotExist) {
			others = append(others, part)
			fmt.Printf("%-10s never ran\n", part)
			continue
		}
		if err != nil {
			return err
		}
		r, err := readKept(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		fmt.Printf("%-10s %d passed, %d failed, %d skipped in %v, at %s, %s, on %s\n", part, r.tally.passed, len(r.tally.failures),
			r.tally.skipped, r.seconds, r.commit, r.date, r.machine)
		if r.commit != commit {
			others = append(others, part)
			continue
		}
		t.passed += r.tally.passed
		t.skipped += r.tally.skipped
		for _, failure := range r.tally.failures {
			t.fail("%s: %s", part, failure)
		}
	}
	if len(others) > 0 {
		fmt.Printf("did not run at commit %s: %s\n", commit, strings.Join(others, " "))
	}
	return nil
}
