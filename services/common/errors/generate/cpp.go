package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const cppNotice = "// Generated from %s.yaml by services/common/errors/generate: change that file.\n// clang-format off\n"

var cppTypes = map[string]string{
	"string": "std::string_view", "int": "int64_t", "duration": "absl::Duration", "time": "absl::Time"}

func (e *entry) cppDeclaration() string {
	var parameters []string
	for _, f := range e.fields {
		parameters = append(parameters, cppTypes[f.kind]+" "+f.name)
	}
	return fmt.Sprintf("absl::Status %s(%s)", e.name, strings.Join(parameters, ", "))
}

func (s *sheet) uses(kind string) bool {
	for _, e := range s.Errors {
		for _, f := range e.fields {
			if f.kind == kind {
				return true
			}
		}
	}
	return false
}

const outcomeNextStep = "std::string_view OutcomeNextStep(std::string_view reason)"

// hasNextSteps tells whether an outcome of the sheet has a next step. One sheet may: its function knows those of errors, too.
func (s *sheet) hasNextSteps() bool {
	return slices.ContainsFunc(s.Outcomes, func(o outcome) bool { return o.Next != "" })
}

func cppHeader(s *sheet) string {
	var out strings.Builder
	guard := "MUSTER_SERVICES_COMMON_ERRORS_" + strings.ToUpper(s.name) + "_H_"
	fmt.Fprintf(&out, cppNotice, s.name)
	fmt.Fprintf(&out, "#ifndef %[1]s\n#define %[1]s\n\n", guard)
	if s.uses("int") {
		out.WriteString("#include <cstdint>\n")
	}
	if s.uses("string") || s.hasNextSteps() {
		out.WriteString("#include <string_view>\n")
	}
	out.WriteString("\n#include \"absl/status/status.h\"\n")
	if s.uses("time") || s.uses("duration") {
		out.WriteString("#include \"absl/time/time.h\"\n")
	}
	fmt.Fprintf(&out, "\n// %s.\nnamespace muster::errors {\n\n", s.Title)
	for _, e := range s.Errors {
		fmt.Fprintf(&out, "// %s, %s.\n%s;\n", e.Code, e.Reason, e.cppDeclaration())
	}
	if s.hasNextSteps() {
		fmt.Fprintf(&out, "\n// Returns the next step after an outcome with this reason or of this name; empty if it has none.\n%s;\n", outcomeNextStep)
	}
	fmt.Fprintf(&out, "\n}  // namespace muster::errors\n\n#endif  // %s\n", guard)
	return out.String()
}

func cppSource(s *sheet, sheets []*sheet) string {
	var out strings.Builder
	fmt.Fprintf(&out, cppNotice, s.name)
	fmt.Fprintf(&out, "#include \"%s/%s.h\"\n\n", folder, s.name)
	out.WriteString("#include \"absl/strings/str_cat.h\"\n#include \"services/common/base/error.h\"\n" +
		"#include \"services/common/base/strings.h\"\n\nnamespace muster::errors {\n")
	for _, e := range s.Errors {
		made := fmt.Sprintf("MakeError(absl::StatusCode::k%s, %q,\n                   %s,\n                   %s)",
			camel(e.Code), e.Reason, e.cppText(e.Message), e.cppText(e.Next))
		if e.Retry > 0 {
			made = fmt.Sprintf("WithRetryAfter(%s,\n                        absl::Seconds(%d))", made, e.Retry/time.Second)
		}
		fmt.Fprintf(&out, "\n%s {\n  return %s;\n}\n", e.cppDeclaration(), made)
	}
	if s.hasNextSteps() {
		fmt.Fprintf(&out, "\n%s {\n", outcomeNextStep)
		steps := nextSteps(sheets, "job")
		for _, reason := range slices.Sorted(maps.Keys(steps)) {
			fmt.Fprintf(&out, "  if (reason == %q) {\n    return %s;\n  }\n", reason, cppQuote(steps[reason]))
		}
		out.WriteString("  return \"\";\n}\n")
	}
	out.WriteString("\n}  // namespace muster::errors\n")
	return out.String()
}

// cppText is the expression that a template stands for.
func (e *entry) cppText(template string) string {
	pieces := e.mustPieces(template)
	if len(pieces) == 0 {
		return `""`
	}
	if len(pieces) == 1 {
		if p := pieces[0]; p.field == nil {
			return cppQuote(p.text)
		} else if p.field.kind == "string" && p.before+p.after == "" {
			return p.field.name
		}
	}
	var parts []string
	for _, p := range pieces {
		if p.field == nil {
			parts = append(parts, cppQuote(p.text))
			continue
		}
		name := p.field.name
		optional := func(text string) {
			if text != "" {
				parts = append(parts, fmt.Sprintf(`%s.empty() ? "" : %s`, name, cppQuote(text)))
			}
		}
		optional(p.before)
		switch p.field.kind {
		case "string":
			parts = append(parts, "ToAbsl("+name+")")
		case "int":
			parts = append(parts, name)
		case "duration":
			parts = append(parts, "absl::FormatDuration("+name+")")
		case "time":
			parts = append(parts, `absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", `+name+", absl::UTCTimeZone())")
		}
		optional(p.after)
	}
	return "absl::StrCat(" + strings.Join(parts, ", ") + ")"
}

// cppQuote is a literal for C++, which shares \" and \\ with Go.
func cppQuote(text string) string { return fmt.Sprintf("%q", text) }
