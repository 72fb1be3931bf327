package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"sort"
	"strings"
)

// buildEvent is the used part of Bazel's build event protocol.
type buildEvent struct {
	ID struct {
		TestResult      *struct{ Label string } `json:"testResult"`
		TestSummary     *struct{ Label string } `json:"testSummary"`
		TargetCompleted *struct{ Label string } `json:"targetCompleted"`
		Pattern         *struct{}               `json:"pattern"`
	} `json:"id"`
	TestResult struct {
		Output []struct{ Name, URI string } `json:"testActionOutput"`
	} `json:"testResult"`
	TestSummary struct {
		Status string `json:"overallStatus"`
	} `json:"testSummary"`
	Completed *struct{ Success bool } `json:"completed"`
	Aborted   *struct{ Reason, Description string }
}

// junitSuites is the XML output of a test target.
type junitSuites struct {
	Suites []struct {
		Cases []struct {
			Name    string `xml:"name,attr"`
			Class   string `xml:"classname,attr"`
			Status  string `xml:"status,attr"`
			Failure []struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error   []struct{} `xml:"error"`
			Skipped []struct{} `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// bazel adds the results of `bazel test`.
func (t *tally) bazel(events io.Reader) error {
	logs := map[string][]string{} // target -> its XML files, one per shard
	status := map[string]string{}
	broken := map[string]string{}
	decoder := json.NewDecoder(events)
	for {
		var event buildEvent
		if err := decoder.Decode(&event); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if id := event.ID.TestResult; id != nil {
			for _, output := range event.TestResult.Output {
				if output.Name == "test.xml" {
					logs[id.Label] = append(logs[id.Label], strings.TrimPrefix(output.URI, "file://"))
				}
			}
		}
		if id := event.ID.TestSummary; id != nil {
			status[id.Label] = event.TestSummary.Status
		}
		if id := event.ID.TargetCompleted; id != nil && (event.Aborted != nil || event.Completed == nil || !event.Completed.Success) {
			broken[id.Label] = "does not build"
		}
		if event.ID.Pattern != nil && event.Aborted != nil {
			broken["bazel"] = event.Aborted.Description
		}
	}
	if len(status)+len(broken) == 0 {
		t.fail("bazel test ran no tests")
	}
	for _, label := range sorted(status) {
		delete(broken, label)
		t.target(label, status[label], logs[label])
	}
	for _, label := range sorted(broken) {
		t.fail("%s: %s", label, broken[label])
	}
	return nil
}

// target adds one test target: its cases, or itself if it reports none.
func (t *tally) target(label, status string, files []string) {
	passed, failed := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // counted below by its status
		}
		var suites junitSuites
		if xml.Unmarshal(text, &suites) != nil {
			continue
		}
		for _, suite := range suites.Suites {
			for _, test := range suite.Cases {
				switch {
				case len(test.Failure)+len(test.Error) > 0:
					failed++
					reason := ""
					if len(test.Failure) > 0 {
						reason = test.Failure[0].Message
					}
					t.failBecause(reason, "%s: %s.%s", label, test.Class, test.Name)
				case test.Status == "notrun" || len(test.Skipped) > 0:
					t.skipped++
				default:
					passed++
				}
			}
		}
	}
	t.passed += passed
	switch ok := status == "PASSED" || status == "FLAKY"; {
	case !ok && failed == 0: // crashed, timed out, did not build
		t.fail("%s: %s", label, strings.ToLower(status))
	case ok && passed+failed == 0:
		t.passed++
	}
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
