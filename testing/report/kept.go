package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// keptParts are the results that testing/nightly kept of its parts.
type keptParts struct {
	folder string
	commit string   // whose results count; with the suffix "-dirty", files were changed
	ran    []string // the parts that ran just now
}

// read returns the result of a part, and whether it counts. Two changed trees of one commit may differ, so a result of one
// counts only if it is new.
func (k *keptParts) read(part string) (r *keptResult, counts bool, err error) {
	text, err := os.ReadFile(filepath.Join(k.folder, part))
	if err != nil {
		return nil, false, err
	}
	if r, err = readKept(string(text)); err != nil {
		return nil, false, err
	}
	return r, r.commit == k.commit && (!strings.HasSuffix(k.commit, "-dirty") || slices.Contains(k.ran, part)), nil
}

// rest returns the parts without a result that counts and has no failure.
func (k *keptParts) rest(parts []string) (rest []string) {
	for _, part := range parts {
		if r, counts, err := k.read(part); err != nil || !counts || len(r.tally.failures) > 0 {
			rest = append(rest, part)
		}
	}
	return rest
}

// kept prints the result of each part, and adds those that count. A part whose result cannot be read has failed.
func (t *tally) kept(k *keptParts, parts []string) {
	var others []string
	for _, part := range parts {
		r, counts, err := k.read(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			others = append(others, part)
			fmt.Printf("%-10s never ran\n", part)
			continue
		case err != nil:
			fmt.Printf("%-10s failed: its result cannot be read: %v\n", part, err)
			t.fail("%s: its result cannot be read: %v", part, err)
			continue
		}
		fmt.Printf("%-10s %d passed, %d failed, %d skipped in %v, at %s, %s, on %s\n", part, r.tally.passed, len(r.tally.failures),
			r.tally.skipped, r.seconds, r.commit, r.date, r.machine)
		if !counts {
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
		fmt.Printf("did not run at commit %s: %s\n", k.commit, strings.Join(others, " "))
	}
}
