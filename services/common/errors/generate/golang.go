package main

import (
	"fmt"
	"go/format"
	"strings"
	"time"
)

const goNotice = "// Code generated from %s by services/common/errors/generate. DO NOT EDIT.\n\n"

var goTypes = map[string]string{"string": "string", "int": "int64", "duration": "time.Duration", "time": "time.Time"}

// goReasons is the package of constants.
func goReasons(sheets []*sheet) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, goNotice, folder)
	out.WriteString("// Package reasons names the reasons of errors: see docs/errors.md.\npackage reasons\n\n" +
		"// The stable reasons of errors, for programs.\nconst (\n")
	for _, reason := range reasons(sheets) {
		fmt.Fprintf(&out, "%s = %q\n", camel(reason), reason)
	}
	out.WriteString(")\n")
	return formatted(out.String())
}

// goSource has the constructors of a sheet.
func goSource(s *sheet) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, goNotice, folder+"/"+s.name+".yaml")
	fmt.Fprintf(&out, "package %s\n\nimport (\n", s.Go.Package)
	var body strings.Builder
	for _, e := range s.Errors {
		e.goFunction(&body, s.Go)
	}
	for _, name := range []string{"fmt", "time"} {
		if strings.Contains(body.String(), name+".") {
			fmt.Fprintf(&out, "%q\n", name)
		}
	}
	out.WriteString("\n\"muster.example/services/client/go/reasons\"\n)\n")
	out.WriteString(body.String())
	return formatted(out.String())
}

func (e *entry) goFunction(out *strings.Builder, to *goOutput) {
	var parameters []string
	for _, f := range e.fields {
		parameters = append(parameters, goName(f.name)+" "+goTypes[f.kind])
	}
	name, result := e.name, strings.TrimPrefix(to.Result, "*")
	if strings.HasPrefix(to.Result, "*") {
		name = "err" + name // of the package itself
		result = "&" + result
	}
	fmt.Fprintf(out, "\n// %s has the reason %s.\nfunc %s(%s) %s {\n", name, e.Reason, name, strings.Join(parameters, ", "), to.Result)
	fmt.Fprintf(out, "return %s{Code: %q, Reason: reasons.%s, Message: %s", result, e.Code, camel(e.Reason), e.goText(e.Message))
	if e.Next != "" {
		fmt.Fprintf(out, ", NextStep: %s", e.goText(e.Next))
	}
	if e.Retry > 0 {
		fmt.Fprintf(out, ", RetryAfter: %d * time.Second", e.Retry/time.Second)
	}
	out.WriteString("}\n}\n")
}

// goText is the expression that a template stands for.
func (e *entry) goText(template string) string {
	var verbs strings.Builder
	var values []string
	for _, p := range e.mustPieces(template) {
		if p.field == nil {
			verbs.WriteString(strings.ReplaceAll(p.text, "%", "%%"))
			continue
		}
		name := goName(p.field.name)
		if p.field.kind == "time" {
			name += ".UTC().Format(time.DateTime)"
		}
		if p.before+p.after != "" {
			name = fmt.Sprintf("optional(%q, %s, %q)", p.before, name, p.after)
		}
		verbs.WriteString("%v")
		values = append(values, name)
	}
	switch {
	case len(values) == 0:
		return fmt.Sprintf("%q", template)
	case verbs.String() == "%v" && e.fields[0].kind == "string":
		return values[0]
	}
	return fmt.Sprintf("fmt.Sprintf(%q, %s)", verbs.String(), strings.Join(values, ", "))
}

func goName(snake string) string {
	name := camel(snake)
	return strings.ToLower(name[:1]) + name[1:]
}

func formatted(source string) (string, error) {
	text, err := format.Source([]byte(source))
	if err != nil {
		return "", fmt.Errorf("generated Go: %w\n%s", err, source)
	}
	return string(text), nil
}
