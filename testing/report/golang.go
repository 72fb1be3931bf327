package main

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// errorLine matches a line that a test wrote with Error, Fatal or Log: they look the same.
var errorLine = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// mostLines is the number of lines that explain a failed test: a few logs may precede its error.
const mostLines = 4

// goTest names a test of a package; an empty name is the package itself.
type goTest struct{ pkg, test string }

// parents returns the tests in which this one is nested.
func (g goTest) parents() []goTest {
	var all []goTest
	for name := g.test; strings.Contains(name, "/"); {
		name = name[:strings.LastIndex(name, "/")]
		all = append(all, goTest{g.pkg, name})
	}
	return all
}

// golang adds the results of `go test -json`. It counts only the innermost of nested tests, unless the outer one failed
// itself.
func (t *tally) golang(events io.Reader) error {
	outcome := map[goTest]string{}
	reason := map[goTest]string{} // the first such lines; the log of the servers follows the errors
	var order []goTest
	decoder := json.NewDecoder(events)
	for {
		var event struct{ Action, Package, Test, Output string }
		if err := decoder.Decode(&event); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		test := goTest{event.Package, event.Test}
		switch event.Action {
		case "output":
			if strings.Count(reason[test], "\n") < mostLines && errorLine.MatchString(event.Output) {
				reason[test] += event.Output
			}
		case "run", "pass", "fail", "skip":
			if _, seen := outcome[test]; !seen {
				order = append(order, test)
			}
			outcome[test] = event.Action
		}
	}
	if len(order) == 0 {
		t.fail("go test ran no tests")
	}
	nests := map[goTest]bool{}     // has tests inside
	explained := map[goTest]bool{} // a test inside failed
	for test, result := range outcome {
		failed := test.test != "" && result != "pass" && result != "skip"
		for _, parent := range append(test.parents(), goTest{pkg: test.pkg}) {
			nests[parent] = nests[parent] || parent.test != ""
			explained[parent] = explained[parent] || failed && test != parent
		}
	}
	for _, test := range order {
		result := outcome[test]
		whole := test.test == "" || nests[test]
		switch {
		case whole && (result == "pass" || result == "skip" || explained[test]):
		case result == "pass":
			t.passed++
		case result == "skip":
			t.skipped++
		default: // failed; or started and never ended; or a package that does not build
			t.failBecause(reason[test], "%s %s", test.pkg, test.test)
		}
	}
	return nil
}
