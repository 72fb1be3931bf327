package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.example/services/common/generated"
)

const root = "../../../.."

func TestGeneratedFilesAreCurrent(t *testing.T) {
	texts, err := files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range generated.Outdated(root, texts) {
		t.Errorf("%s is stale: go run ./services/common/errors/generate", name)
	}
}

// makers may call MakeError: what is generated, and what passes on an error that another process made.
var makers = regexp.MustCompile(`^services/common/errors/|^services/common/base/error\.|` +
	`^services/common/rpc/status\.cc$|^services/relay/proxy/heartbeats/heartbeat_hub\.cc$|^cli/(rpc/https_client|exit_code)\.cc$`)

var (
	makeError = regexp.MustCompile(`\bMakeError\(`)
	literal   = regexp.MustCompile(`"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"`)
	comment   = regexp.MustCompile(`(?m)//.*$`)
	// Literals of C++ in upper case that are no reasons: names of environment variables, of HTTP/2 settings and of OpenSSL.
	variable = regexp.MustCompile(`^((MUSTER|SONOBUOY|GRPC|TEST|WORLD|XDG)_.*|LC_ALL|NO_COLOR|SSL_(ERROR_SYSCALL|CERT_FILE|CERT_DIR)|(HTTPS?|ALL|NO)_PROXY|REGISTRY_AUTH_FILE|DOCKER_CONFIG|MAX_(CONCURRENT_STREAMS|HEADER_LIST_SIZE)|(AGGREGATOR|MASTER)_URL|RESULT_TYPE|` +
		`NODE_NAME|DOCKER_HOST|RESULTS_DIR|TSAN_OPTIONS|CA_CERT|CLIENT_(CERT|KEY))$`)
)

func TestErrorsAreMadeByTheTable(t *testing.T) {
	sheets, err := readTable(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, reason := range reasons(sheets) {
		known[reason] = true
	}
	generated := map[string]bool{}
	for _, s := range sheets {
		for _, o := range s.Outcomes {
			known[o.name()] = true
		}
		if s.Go != nil {
			generated[s.Go.File] = true
		}
	}
	each(t, func(name, text string) {
		text = comment.ReplaceAllString(text, "")
		switch filepath.Ext(name) {
		case ".cc", ".h":
			if makeError.MatchString(text) && !makers.MatchString(name) {
				t.Errorf("%s calls MakeError: add the error to the table in %s", name, folder)
			}
			for _, match := range literal.FindAllStringSubmatch(text, -1) {
				if !known[match[1]] && !variable.MatchString(match[1]) {
					t.Errorf("%s: reason %s is not in the table in %s", name, match[1], folder)
				}
			}
		case ".go":
			if generated[name] || strings.HasPrefix(name, "services/client/go/reasons/") {
				return
			}
			for _, match := range literal.FindAllStringSubmatch(text, -1) {
				if known[match[1]] {
					t.Errorf("%s: write reasons.%s for %q", name, camel(match[1]), match[1])
				}
			}
		}
	})
}

// each calls visit with every source that is not a test's.
func each(t *testing.T, visit func(name, text string)) {
	for _, top := range []string{"services", "gateway", "cli"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || isTest(path) {
				return err
			}
			switch filepath.Ext(path) {
			case ".cc", ".h", ".go":
			default:
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			visit(filepath.ToSlash(name), string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func isTest(path string) bool {
	for _, part := range []string{"_test.", "_contract.", "/testdata/", "/gen/", "/mustertest/", "/node_modules/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

func TestTemplates(t *testing.T) {
	e := &entry{Signature: "SizeIs(path string, size int, why string)", Reason: "SIZE_IS", Code: "INTERNAL",
		Message: `file "{path}" has {size} bytes{: why}`, Next: "Look at {path}."}
	if err := e.check(); err != nil {
		t.Fatal(err)
	}
	const cpp = `absl::StrCat("file \"", ToAbsl(path), "\" has ", size, " bytes", why.empty() ? "" : ": ", ToAbsl(why))`
	if got := e.cppText(e.Message); got != cpp {
		t.Errorf("C++ is\n%s, want\n%s", got, cpp)
	}
	const golang = `fmt.Sprintf("file \"%v\" has %v bytes%v", path, size, optional(": ", why, ""))`
	if got := e.goText(e.Message); got != golang {
		t.Errorf("Go is\n%s, want\n%s", got, golang)
	}
	const shown = `file "{path}" has {size} bytes: {why}`
	if got := e.shown(e.Message); got != shown {
		t.Errorf("the page has\n%s, want\n%s", got, shown)
	}
}

func TestReasonOfRecordsHasOneNextStep(t *testing.T) {
	sheets := func(records ...string) []*sheet {
		s := &sheet{Outcomes: []outcome{{Outcome: "JOB_OUTCOME_LOST", Next: "Look."}}}
		for _, record := range records {
			s.Errors = append(s.Errors, &entry{Reason: "REFUSED", Next: "Ask for a " + record + ".", Record: record})
		}
		return []*sheet{s}
	}
	if checkRecords(sheets("job", "container")) != nil || checkRecords(sheets("job", "job")) == nil {
		t.Error("a reason may have one next step for jobs, and one for containers")
	}
	steps := nextSteps(sheets("container", "job"), "job", "container")
	if len(steps) != 2 || steps["REFUSED"] != "Ask for a container." || steps["JOB_OUTCOME_LOST"] != "Look." {
		t.Errorf("the next steps are %v", steps)
	}
}

func TestBadEntriesAreRefused(t *testing.T) {
	good := entry{Signature: "A(b string)", Reason: "REASON", Code: "INTERNAL", Message: "what {b}", Next: "Do it."}
	for name, change := range map[string]func(*entry){
		"signature":     func(e *entry) { e.Signature = "A b" },
		"type":          func(e *entry) { e.Signature = "A(b float)" },
		"reason":        func(e *entry) { e.Reason = "Reason" },
		"code":          func(e *entry) { e.Code = "BAD" },
		"unknown field": func(e *entry) { e.Message = "what {c} {b}" },
		"unused field":  func(e *entry) { e.Message = "what" },
		"upper case":    func(e *entry) { e.Message = "What {b}" },
		"full stop":     func(e *entry) { e.Message = "what {b}." },
		"no sentence":   func(e *entry) { e.Next = "do it" },
		"record":        func(e *entry) { e.Record = "run" },
		"step of field": func(e *entry) { e.Record, e.Next = "job", "Do {b}." },
	} {
		bad := good
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
