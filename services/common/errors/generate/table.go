package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster.example/services/common/generated"
)

const folder = "services/common/errors"

// sheet is one file of the table.
type sheet struct {
	Title  string
	Cpp    bool
	Go     *goOutput
	Errors []*entry
	// Reasons and outcomes of records and reports, which no call returns as an error.
	Outcomes []outcome
	name     string // of the file, without .yaml
}

// outcome is a reason in a record or a report, or an outcome of jobs.proto, which may have no reason.
type outcome struct{ Reason, Outcome, Meaning, Next string }

func (o outcome) name() string { return o.Reason + o.Outcome }

// goOutput says where the constructors of a sheet go, and what they return.
type goOutput struct {
	File, Package, Result string
}

// entry is one error.
type entry struct {
	Signature string `yaml:"error"` // Name(field type, ...)
	Reason    string
	Code      string
	Message   string
	Next      string
	Retry     time.Duration
	// The reason is also one of final records of jobs, with the same next step: "job", or "container" only for commands in
	// a container.
	Record string

	name   string
	fields []field
}

type field struct{ name, kind string }

// piece is a part of a template: text, or a field. Before and after are written only if the field is not empty.
type piece struct {
	text          string
	field         *field
	before, after string
}

var (
	signature = regexp.MustCompile(`^([A-Z][A-Za-z0-9]+)\(([a-z_ ,]*)\)$`)
	reasonRe  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{4,62}$`)
	hole      = regexp.MustCompile(`\{([^a-z{}]*)([a-z][a-z_]*)([^a-z_{}]*)\}`)
	codes     = []string{"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}
	kinds = []string{"string", "int", "duration", "time"}
)

// readTable reads and checks all sheets, in the order of their titles' files.
func readTable(root string) ([]*sheet, error) {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no table in %s: %w", folder, err)
	}
	var sheets []*sheet
	names := map[string]string{}
	for _, path := range paths {
		s := &sheet{name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
		if err := generated.ReadYAML(path, s); err != nil {
			return nil, err
		}
		for _, o := range s.Outcomes {
			if !reasonRe.MatchString(o.name()) || (o.Reason != "" && o.Outcome != "") || o.Meaning == "" {
				return nil, fmt.Errorf("%s: outcome %q needs a reason or an outcome, and a meaning", path, o.name())
			}
			if err := checkNext(o.Next); err != nil {
				return nil, fmt.Errorf("%s: outcome %q: %w", path, o.name(), err)
			}
		}
		for _, e := range s.Errors {
			if err := e.check(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, e.Signature, err)
			}
			if other, ok := names[e.name]; ok && s.Cpp {
				return nil, fmt.Errorf("%s: %s is in %s as well", path, e.name, other)
			}
			if s.Cpp {
				names[e.name] = path
			}
		}
		sheets = append(sheets, s)
	}
	return sheets, checkRecords(sheets)
}

// checkRecords refuses two next steps for one reason.
func checkRecords(sheets []*sheet) error {
	seen := map[string]bool{}
	once := func(reason, record string) error {
		key := record + " " + reason
		if seen[key] {
			return fmt.Errorf("records (%s) have two next steps for %s", record, reason)
		}
		seen[key] = true
		return nil
	}
	for _, s := range sheets {
		for _, o := range s.Outcomes {
			if err := once(o.name(), "job"); err != nil {
				return err
			}
		}
		for _, e := range s.Errors {
			if e.Record == "" {
				continue
			}
			if err := once(e.Reason, e.Record); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *entry) check() error {
	match := signature.FindStringSubmatch(e.Signature)
	if match == nil {
		return fmt.Errorf("not of the form Name(field type, ...)")
	}
	e.name = match[1]
	for _, text := range strings.Split(match[2], ",") {
		words := strings.Fields(text)
		switch {
		case len(words) == 0 && match[2] == "":
		case len(words) != 2 || !slices.Contains(kinds, words[1]):
			return fmt.Errorf("field %q: want a name and one of %v", text, kinds)
		default:
			e.fields = append(e.fields, field{words[0], words[1]})
		}
	}
	if !reasonRe.MatchString(e.Reason) {
		return fmt.Errorf("reason %q is not UPPER_SNAKE_CASE of 5 to 63 characters", e.Reason)
	}
	if !slices.Contains(codes, e.Code) {
		return fmt.Errorf("unknown code %q", e.Code)
	}
	used := map[string]bool{}
	for _, template := range []string{e.Message, e.Next} {
		pieces, err := e.pieces(template)
		if err != nil {
			return err
		}
		for _, p := range pieces {
			if p.field != nil {
				used[p.field.name] = true
			}
		}
	}
	for _, f := range e.fields {
		if !used[f.name] {
			return fmt.Errorf("field %s is not used", f.name)
		}
	}
	if e.Record != "" && (e.Record != "job" && e.Record != "container" || e.Next == "" || hole.MatchString(e.Next)) {
		return fmt.Errorf("record %q: want job or container, and a next step without fields", e.Record)
	}
	return e.checkWords()
}

// checkWords holds the texts to the style of errors.
func (e *entry) checkWords() error {
	if e.Message == "" {
		return fmt.Errorf("no message")
	}
	first := e.Message[0]
	if first >= 'A' && first <= 'Z' && !regexp.MustCompile(`^[A-Z]{2}`).MatchString(e.Message) || strings.HasSuffix(e.Message, ".") {
		return fmt.Errorf("a message begins in lower case and has no full stop: %q", e.Message)
	}
	return checkNext(e.Next)
}

func checkNext(next string) error {
	if next != "" && !strings.HasPrefix(next, "{") && (next[0] < 'A' || next[0] > 'Z') {
		return fmt.Errorf("a next step is a sentence: %q", next)
	}
	if next != "" && !strings.HasSuffix(next, ".") && !strings.HasSuffix(next, "}") && !strings.HasSuffix(next, " -") {
		return fmt.Errorf("a next step ends with a full stop: %q", next)
	}
	return nil
}

// pieces cuts a template at its fields.
func (e *entry) pieces(template string) ([]piece, error) {
	var all []piece
	end := 0
	for _, m := range hole.FindAllStringSubmatchIndex(template, -1) {
		if m[0] > end {
			all = append(all, piece{text: template[end:m[0]]})
		}
		i := slices.IndexFunc(e.fields, func(f field) bool { return f.name == template[m[4]:m[5]] })
		if i < 0 {
			return nil, fmt.Errorf("there is no field %q", template[m[4]:m[5]])
		}
		p := piece{field: &e.fields[i], before: template[m[2]:m[3]], after: template[m[6]:m[7]]}
		if (p.before != "" || p.after != "") && p.field.kind != "string" {
			return nil, fmt.Errorf("only a string may be left out: %s", p.field.name)
		}
		all = append(all, p)
		end = m[1]
	}
	if end < len(template) {
		all = append(all, piece{text: template[end:]})
	}
	return all, nil
}

// mustPieces is pieces of a template that check accepted.
func (e *entry) mustPieces(template string) []piece {
	all, err := e.pieces(template)
	if err != nil {
		panic(err)
	}
	return all
}

// reasons returns all reasons of the table, sorted.
func reasons(sheets []*sheet) []string {
	var all []string
	for _, s := range sheets {
		for _, e := range s.Errors {
			all = append(all, e.Reason)
		}
		for _, o := range s.Outcomes {
			if o.Reason != "" {
				all = append(all, o.Reason)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func camel(snake string) string {
	var out strings.Builder
	for _, word := range strings.Split(strings.ToLower(snake), "_") {
		if word != "" {
			out.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return out.String()
}

// nextSteps returns the next steps after the outcomes of jobs, by reason or outcome. Those of errors are included if the
// error has one of these records; a later one overrides an earlier one.
func nextSteps(sheets []*sheet, records ...string) map[string]string {
	steps := map[string]string{}
	for _, s := range sheets {
		for _, o := range s.Outcomes {
			if o.Next != "" {
				steps[o.name()] = o.Next
			}
		}
	}
	for _, record := range records {
		for _, s := range sheets {
			for _, e := range s.Errors {
				if e.Record == record {
					steps[e.Reason] = e.Next
				}
			}
		}
	}
	return steps
}
