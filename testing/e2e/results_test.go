package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

const junit = `<testsuite name="suite"><testcase name="boots"/><testcase name="sings"><failure message="out of tune"/></testcase>` +
	`<testcase name="swims"><skipped/></testcase></testsuite>`

// completeWithResults creates a run with three test cases on n1, and an error on n2.
func completeWithResults(t *testing.T, f *fleet.Fleet) string {
	t.Helper()
	definition := strings.Replace(sidecarPlugin("checks", "DaemonSet"), "result-format: raw", "result-format: junit", 1)
	id := run(t, f, []string{definition}, "n1", "n2")
	credential := must(f.Export(id, "checks", "n1"))(t)
	file := must(f.WriteFile("junit.xml", junit))(t)
	must(f.Muster("submit", file, "--config", credential.File))(t)
	_, err := f.Muster("submit", "--error", "the disk is gone", "--config", must(f.Export(id, "checks", "n2"))(t).File)
	wantExit(t, err, 10)
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	return id
}

func TestResultsPrintsEachMode(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := completeWithResults(t, f)
	files := archive(t, f, id)
	for _, c := range []struct{ name, want, arguments string }{
		{"report", "Plugin: checks\nStatus: failed\nTotal: 4\nPassed: 1\nFailed: 2\nSkipped: 1\n\nFailed:\n  n1: sings\n  n2: the disk is gone", ""},
		{"report of a node", "Plugin: checks\nNode: n1\nStatus: failed\nTotal: 3\nPassed: 1\nFailed: 1\nSkipped: 1\n\nFailed:\n  sings\n",
			"--node n1 --mode report"},
		{"dump", "---\n" + files["plugins/checks/sonobuoy_results.yaml"], "--mode dump"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := must(f.Muster(append([]string{"results", id}, strings.Fields(c.arguments)...)...))(t)
			if !strings.HasPrefix(got, c.want) || c.name != "report" && got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	t.Run("detailed", func(t *testing.T) {
		type item struct{ Plugin, Node, Name, Status string }
		want := []item{{"checks", "n1", "boots", "passed"}, {"checks", "n1", "sings", "failed"}, {"checks", "n1", "swims", "skipped"}}
		lines := strings.Split(strings.TrimSpace(must(f.Muster("results", id, "--node", "n1", "--mode", "detailed"))(t)), "\n")
		if len(lines) != len(want) {
			t.Fatalf("got %q, want %d lines", lines, len(want))
		}
		for i, line := range lines {
			var got item
			check(t, json.Unmarshal([]byte(line), &got))
			if got != want[i] {
				t.Errorf("line %d is %+v, want %+v", i, got, want[i])
			}
		}
		if !strings.Contains(lines[1], "out of tune") {
			t.Errorf("the reason of the failure is missing: %s", lines[1])
		}
	})
	t.Run("report as JSON", func(t *testing.T) {
		var report struct {
			Run     string
			Plugins []struct {
				Plugin, Status         string
				Total, Passed, Skipped int
			}
		}
		check(t, f.JSON(&report, "results", id))
		if report.Run != id || len(report.Plugins) != 1 || report.Plugins[0].Total != 4 || report.Plugins[0].Passed != 1 {
			t.Errorf("got %+v", report)
		}
	})
	t.Run("nothing of such a node", func(t *testing.T) {
		_, err := f.Muster("results", id, "--node", "n9")
		wantExit(t, err, 1, "n9", "--mode detailed")
	})
}

// Before there is an archive, the command prints the results so far.
func TestResultsOfUnfinishedRunAreListed(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	if code, err := put(t, must(f.Export(id, "logs", "n1"))(t), "n1", "four"); err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	var so struct {
		State   string
		Results []struct {
			Node, Outcome string
			Size          int64
		}
	}
	check(t, f.JSON(&so, "results", id))
	if len(so.Results) != 2 || so.Results[0].Outcome != "genuine" || so.Results[0].Size != 4 || so.Results[1].Outcome != "pending" {
		t.Errorf("got %+v", so)
	}
	table := must(f.Muster("results", id))(t)
	if lines := strings.Split(strings.TrimSpace(table), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "PLUGIN") {
		t.Errorf("stdout holds more than the table: %q", table)
	}
}

// Only data is printed to stdout; messages for people go to stderr.
func TestStdoutHasOnlyData(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := completeWithResults(t, f)
	file := f.Home + "/archive.tar.gz"
	config := must(f.Export(run(t, f, []string{sidecarPlugin("p", "Job")}), "p", "global"))(t)
	result := must(f.WriteFile("r", "x"))(t)
	for _, c := range []struct{ command, want string }{
		{"retrieve " + id + " -o " + file, file + "\n"},
		{"retrieve " + id + " -o " + file, file + "\n"}, // it was retrieved before
		{"credentials export " + config.Run + " --plugin p --node global -o " + f.Home + "/c.json", ""},
		{"operator add ann -o " + f.Home + "/ann.json", ""},
		{"submit " + result + " --config " + config.File, ""},
		{"delete " + id, ""},
		{"down", ""},
	} {
		out, err := f.Muster(strings.Fields(c.command)...)
		if err != nil || out != c.want {
			t.Errorf("muster %s: %v, stdout %q, want %q", c.command, err, out, c.want)
		}
	}
	for _, command := range []string{"up", "run --plugin hostfacts --node n1"} {
		var any any
		check(t, f.JSON(&any, strings.Fields(command)...))
	}
}
