// Errordocs writes docs/errors.md from the places in the code that create errors, so that every reason that a user can
// get is on that page with its text. Its test fails when the page is outdated.
//
//	go run ./testing/errordocs   # from the root: writes docs/errors.md
package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// entry is one reason at one place.
type entry struct {
	reason, code, message, next, file string
}

var (
	// A call whose first or second argument is a reason.
	cppCall = regexp.MustCompile(`(\w+)\(\s*(?:[\w:]*\bk([A-Z]\w+),\s*)?"([A-Z][A-Z0-9_]{4,62})",`)
	// problem{message, "REASON", next}, or rest.Problem{Message: message, Reason: "REASON", NextStep: next}
	goProblem = regexp.MustCompile(
		`[pP]roblem\{\s*([^{}]*?),\s*(?:Reason:\s*)?"([A-Z][A-Z0-9_]{4,62})",\s*([^{}]*?)\}\)`)
	// &Error{Code: "X", Reason: "REASON", Message: "...", NextStep: "..."}
	goError  = regexp.MustCompile(`Code: "([A-Z_]+)",\s*Reason: "([A-Z][A-Z0-9_]{4,62})",\s*Message: ([^}]*)\}`)
	goNext   = regexp.MustCompile(`(?s)^(.*),\s*NextStep:(.*)$`)
	literals = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	words    = regexp.MustCompile(`[A-Z][a-z]+`)
)

const heading = `# Errors

Every error says what happened, to what, and what to do next. Programs read the reason: it is stable. Over
gRPC it is in ` + "`muster.v1.ErrorDetail`" + ` (proto/muster/v1/errors.proto), over REST in the field
` + "`reason`" + `, on the command line in ` + "`--json`" + ` and in logs. "..." stands for names and numbers.

This page is written from the code by ` + "`go run ./testing/errordocs`" + `, and a test keeps it so.
`

func main() {
	page, err := page(".")
	if err == nil {
		err = os.WriteFile("docs/errors.md", []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "errordocs:", err)
		os.Exit(1)
	}
}

// page returns the whole text, from the tree at root.
func page(root string) (string, error) {
	entries, err := collect(root)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(heading)
	sections := []struct{ title, prefix string }{
		{"Errors of the services", "services/common/errors.cc"},
		{"Errors of relays", "services/relay/"},
		{"Elsewhere in the services", "services/"},
		{"The gateway", "gateway/"},
		{"The command line and the supervisor", "cli/"},
	}
	for _, section := range sections {
		var rows []entry
		entries = slices.DeleteFunc(entries, func(e entry) bool {
			if !strings.HasPrefix(e.file, section.prefix) {
				return false
			}
			rows = append(rows, e)
			return true
		})
		write(&out, section.title, rows)
	}
	return out.String(), nil
}

func write(out *strings.Builder, title string, rows []entry) {
	if len(rows) == 0 {
		return
	}
	slices.SortStableFunc(rows, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.file, b.file))
	})
	fmt.Fprintf(out, "\n## %s\n\n| reason | code | message | next step |\n|---|---|---|---|\n", title)
	last := ""
	for _, e := range rows {
		row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", e.reason, e.code, cell(e.message), cell(e.next))
		if row != last {
			out.WriteString(row)
		}
		last = row
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// collect finds every place that creates an error with a reason.
func collect(root string) ([]entry, error) {
	var all []entry
	for _, folder := range []string{"services", "gateway", "cli"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || isTest(path) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			switch filepath.Ext(path) {
			case ".cc", ".h":
				all = append(all, fromCpp(name, string(text))...)
			case ".go":
				all = append(all, fromGo(name, string(text))...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func isTest(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, "_test.") || strings.Contains(name, "test_") || strings.Contains(name, "contract") ||
		strings.Contains(path, "/testdata/")
}

func fromCpp(file, text string) []entry {
	var found []entry
	for _, match := range cppCall.FindAllStringSubmatchIndex(text, -1) {
		function, reason := text[match[2]:match[3]], text[match[6]:match[7]]
		if function == "setenv" || function == "label" { // not an error
			continue
		}
		e := entry{reason: reason, file: file}
		if match[4] >= 0 {
			e.code = upperSnake(text[match[4]:match[5]])
		}
		rest := arguments(text[match[1]:])
		if len(rest) > 0 {
			e.message = spoken(rest[0])
		}
		if len(rest) > 1 {
			e.next = spoken(rest[1])
		}
		found = append(found, e)
	}
	return found
}

func fromGo(file, text string) []entry {
	flat := strings.Join(strings.Fields(text), " ")
	var found []entry
	for _, match := range goProblem.FindAllStringSubmatch(flat, -1) {
		found = append(found, entry{reason: match[2], message: spoken(match[1]), next: spoken(match[3]), file: file})
	}
	for _, match := range goError.FindAllStringSubmatch(flat, -1) {
		e := entry{reason: match[2], code: match[1], message: spoken(match[3]), file: file}
		if parts := goNext.FindStringSubmatch(match[3]); parts != nil {
			e.message, e.next = spoken(parts[1]), spoken(parts[2])
		}
		found = append(found, e)
	}
	return found
}

// arguments splits the text up to the call's closing parenthesis at the commas of the top level.
func arguments(text string) []string {
	var all []string
	depth, begin, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '{' || c == '[':
			depth++
		case c == ')' || c == '}' || c == ']':
			if depth == 0 {
				return append(all, text[begin:i])
			}
			depth--
		case c == ',' && depth == 0:
			all = append(all, text[begin:i])
			begin = i + 1
		}
	}
	return all
}

// spoken returns the text of an expression: its literals, with "..." between them.
func spoken(expression string) string {
	var parts []string
	end := 0
	for _, match := range literals.FindAllStringSubmatchIndex(expression, -1) {
		between := strings.Trim(expression[end:match[0]], " \n\t")
		if end > 0 && strings.Trim(between, ", \n\t") != "" {
			parts = append(parts, "...")
		} else if end == 0 && strings.Contains(between, ",") { // a name before the first words
			parts = append(parts, "...")
		}
		parts = append(parts, unescape(expression[match[2]:match[3]]))
		end = match[1]
	}
	if end > 0 && strings.Contains(expression[end:], ",") {
		parts = append(parts, "...")
	}
	text := formats.ReplaceAllString(strings.Join(parts, ""), "...")
	return strings.TrimSpace(dots.ReplaceAllString(text, "..."))
}

var (
	formats = regexp.MustCompile(`%(?:\.\d+)?[sdqvxw]|\$\d`)
	dots    = regexp.MustCompile(`\.{4,}`)
)

func unescape(text string) string {
	return strings.NewReplacer(`\"`, `"`, `\n`, " ", `\\`, `\`).Replace(text)
}

func upperSnake(camel string) string {
	return strings.ToUpper(strings.Join(words.FindAllString(camel, -1), "_"))
}
