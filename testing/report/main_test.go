package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGoReportCountsInnermostTestsAndBrokenPackages(t *testing.T) {
	var sum tally
	err := sum.golang(strings.NewReader(`
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"run","Package":"p","Test":"TestA/two"}
{"Action":"output","Package":"p","Test":"TestA/two","Output":"=== RUN TestA/two\n"}
{"Action":"output","Package":"p","Test":"TestA/two","Output":"    a_test.go:7: it is 5\n"}
{"Action":"output","Package":"p","Test":"TestA/two","Output":"    up.go:9: the log of the servers\n"}
{"Action":"fail","Package":"p","Test":"TestA/two"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p","Test":"TestC/sub"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"run","Package":"p","Test":"TestNeverEnded"}
{"Action":"fail","Package":"p"}
{"Action":"fail","Package":"broken"}
{"Action":"pass","Package":"empty"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := "[p TestA/two: a_test.go:7: it is 5 up.go:9: the log of the servers p TestC p TestNeverEnded broken ]"
	if sum.passed != 2 || sum.skipped != 1 || fmt.Sprint(sum.failures) != want {
		t.Errorf("passed %d, skipped %d, failures %v, want 2, 1, %s", sum.passed, sum.skipped, sum.failures, want)
	}
}

func TestBazelReportCountsCasesCrashesAndBrokenTargets(t *testing.T) {
	xml := filepath.Join(t.TempDir(), "test.xml")
	text := `<testsuites><testsuite><testcase name="a" classname="S" status="run"/>
<testcase name="b" classname="S" status="run"><failure message="x_test.cc:7&#x0A;It is 5"/></testcase>
<testcase name="c" classname="S" status="notrun"/></testsuite></testsuites>`
	if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var sum tally
	err := sum.bazel(strings.NewReader(fmt.Sprintf(`
{"id":{"targetCompleted":{"label":"//a"}},"completed":{"success":true}}
{"id":{"testResult":{"label":"//a"}},"testResult":{"testActionOutput":[{"name":"test.xml","uri":"file://%s"}]}}
{"id":{"testSummary":{"label":"//a"}},"testSummary":{"overallStatus":"FAILED"}}
{"id":{"testSummary":{"label":"//crash"}},"testSummary":{"overallStatus":"TIMEOUT"}}
{"id":{"testSummary":{"label":"//script"}},"testSummary":{"overallStatus":"PASSED"}}
{"id":{"targetCompleted":{"label":"//broken"}},"aborted":{"reason":"ANALYSIS_FAILURE"}}
`, xml)))
	if err != nil {
		t.Fatal(err)
	}
	want := "[//a: S.b: x_test.cc:7 It is 5 //crash: timeout //broken: does not build]"
	if sum.passed != 2 || sum.skipped != 1 || fmt.Sprint(sum.failures) != want {
		t.Errorf("passed %d, skipped %d, failures %v, want 2, 1, %s", sum.passed, sum.skipped, sum.failures, want)
	}
}

func TestReportWithoutTestsFails(t *testing.T) {
	var sum, bazel, golang tally
	if err := errors.Join(bazel.bazel(strings.NewReader("")), golang.golang(strings.NewReader(""))); err != nil {
		t.Fatal(err)
	}
	if sum.print() != 1 || bazel.print() != 1 || golang.print() != 1 {
		t.Error("an empty report passed")
	}
}

func TestCheckCountsAsOne(t *testing.T) {
	var sum tally
	for _, argument := range []string{"lint=0", "style=2"} {
		if err := sum.check(argument); err != nil {
			t.Fatal(err)
		}
	}
	if sum.passed != 1 || len(sum.failures) != 1 || sum.check("lint") == nil {
		t.Errorf("passed %d, failures %v", sum.passed, sum.failures)
	}
}

// keep writes the results of parts.
func keep(t *testing.T, parts map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for part, text := range parts {
		if err := os.WriteFile(filepath.Join(folder, part), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const head = "date 2026-11-23T08:00:00Z\nmachine m Linux, 2 cores\nseconds 61\n"

func TestKeptResultsCountIfTheyRanAtTheCommit(t *testing.T) {
	folder := keep(t, map[string]string{
		"asan": "commit a1\n" + head + "FAILED //x: S.b\n3 skipped\n5 passed, 1 failed\n",
		"tsan": "commit a1\n" + head + "7 passed, 0 failed\n",
		"fuzz": "commit b2\n" + head + "FAILED old\n9 passed, 1 failed\n",
	})
	var sum tally
	parts := keptParts{folder: folder, commit: "a1"}
	sum.kept(&parts, []string{"asan", "tsan", "fuzz", "tidy"})
	if sum.passed != 12 || sum.skipped != 3 || fmt.Sprint(sum.failures) != "[asan: //x: S.b]" {
		t.Errorf("%+v", sum)
	}
	if rest := fmt.Sprint(parts.rest([]string{"asan", "tsan", "fuzz", "tidy"})); rest != "[asan fuzz tidy]" {
		t.Error(rest)
	}
}

func TestKeptResultOfChangedTreeCountsOnlyIfNew(t *testing.T) {
	folder := keep(t, map[string]string{
		"asan": "commit a1-dirty\n" + head + "5 passed, 0 failed\n",
		"tsan": "commit a1-dirty\n" + head + "FAILED x\n7 passed, 1 failed\n",
	})
	var sum tally
	parts := keptParts{folder: folder, commit: "a1-dirty"}
	if rest := fmt.Sprint(parts.rest([]string{"asan", "tsan"})); rest != "[asan tsan]" {
		t.Error(rest)
	}
	parts.ran = []string{"asan"}
	sum.kept(&parts, []string{"asan", "tsan"})
	if sum.passed != 5 || len(sum.failures) != 0 {
		t.Errorf("%+v", sum)
	}
}

func TestUnreadableKeptResultFailsWithoutTheOthers(t *testing.T) {
	folder := keep(t, map[string]string{
		"asan": "commit a1\n" + head,
		"tsan": "commit a1\n" + head + "7 passed, 0 failed\n",
	})
	var sum tally
	parts := keptParts{folder: folder, commit: "a1"}
	sum.kept(&parts, []string{"asan", "tsan"})
	if sum.passed != 7 || len(sum.failures) != 1 || !strings.HasPrefix(sum.failures[0], "asan: ") {
		t.Errorf("%+v", sum)
	}
	if rest := fmt.Sprint(parts.rest([]string{"asan", "tsan"})); rest != "[asan]" {
		t.Error(rest)
	}
}

func TestKeptResultWithoutItsCountsIsAnError(t *testing.T) {
	for _, text := range []string{"", "commit a1\nseconds 5\n", "commit a1\n5 passed, 1 failed\n", "5 passed, 0 failed\n",
		"commit a1\nseconds x\n5 passed, 0 failed\n", "commit a1\n5 passed, 0 failed\npanic: x\n"} {
		if r, err := readKept(text); err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}
