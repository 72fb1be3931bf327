// Report summarises the output of the test runners and prints "N passed, N failed" as its last line.
//
//	report [-bazel EVENTS.json]... [-go EVENTS.json]... [-check NAME=EXITCODE]...
//	report -kept FOLDER -commit COMMIT [-ran "PART..."] PART...
//	report -kept FOLDER -commit COMMIT -rest PART...
//
// A case of a googletest or of a Go test counts as one; so does a test target that reports no cases, a target or
// package that does not build, and a check. It exits with 1 if a test failed or none ran. The second form sums the results
// that testing/nightly kept of its parts, if they ran at the commit. The third prints the parts that have not passed at the
// commit.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// tally is the sum over all runners.
type tally struct {
	passed, skipped int
	failures        []string
}

func (t *tally) fail(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// failBecause adds a failure with the beginning of its reason, if it has one, on one line.
func (t *tally) failBecause(reason, format string, args ...any) {
	const most = 600 // characters
	what := fmt.Sprintf(format, args...)
	reason = strings.Join(strings.Fields(reason), " ")
	if line := []rune(reason); len(line) > most {
		reason = string(line[:most]) + "…"
	}
	if reason != "" {
		what += ": " + reason
	}
	t.fail("%s", what)
}

// check adds "NAME=EXITCODE".
func (t *tally) check(argument string) error {
	name, code, found := strings.Cut(argument, "=")
	exit, err := strconv.Atoi(code)
	if !found || err != nil {
		return fmt.Errorf("-check %q is not NAME=EXITCODE", argument)
	}
	if exit == 0 {
		t.passed++
	} else {
		t.fail("%s (exit code %d)", name, exit)
	}
	return nil
}

func main() {
	var sum tally
	read := func(parse func(*tally, *os.File) error) func(string) error {
		return func(path string) error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			if err := parse(&sum, file); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		}
	}
	flag.Func("bazel", "events of bazel (--build_event_json_file)",
		read(func(t *tally, f *os.File) error { return t.bazel(f) }))
	flag.Func("go", "events of go test -json", read(func(t *tally, f *os.File) error { return t.golang(f) }))
	flag.Func("check", "NAME=EXITCODE of a check", sum.check)
	var parts keptParts
	flag.StringVar(&parts.folder, "kept", "", "folder with the results of the parts")
	flag.StringVar(&parts.commit, "commit", "", "the commit whose results count")
	ran := flag.String("ran", "", "the parts that ran just now")
	rest := flag.Bool("rest", false, "print the parts that have not passed at the commit")
	flag.Parse()
	if *rest {
		fmt.Println(strings.Join(parts.rest(flag.Args()), " "))
		return
	}
	if parts.ran = strings.Fields(*ran); parts.folder != "" {
		sum.kept(&parts, flag.Args())
	}
	os.Exit(sum.print())
}

func (t *tally) print() int {
	for _, failure := range t.failures {
		fmt.Println("FAILED", failure)
	}
	if t.skipped > 0 {
		fmt.Printf("%d skipped\n", t.skipped)
	}
	if t.passed+len(t.failures) == 0 {
		t.fail("nothing ran")
		fmt.Println("FAILED nothing ran")
	}
	fmt.Printf("%d passed, %d failed\n", t.passed, len(t.failures))
	if len(t.failures) > 0 {
		return 1
	}
	return 0
}
