package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const heading = `# Errors

Every error states what failed, with its value, and the next step if a person can take one. Programs read the reason,
which is stable. It is in ` + "`muster.v1.ErrorDetail`" + ` (proto/muster/v1/errors.proto) over gRPC, and in the field
` + "`reason`" + ` over REST. The command line prints it in parentheses after the message on stderr, also with
` + "`--json`" + `; an error of the arguments (exit code 2) may have none. Names in braces stand for values.

Over gRPC, two kinds of errors have no ` + "`ErrorDetail`" + `:

- A refusal before the method begins, such as ` + "`ROLE_NOT_ALLOWED`, `REVOKED`, `IDENTITY_NOT_FORWARDABLE`" + `,
  ` + "`IDENTITY_MALFORMED` or `TOO_MANY_WAITING_CALLS`" + `. gRPC lets the authentication of a call return only a code and
  a message. The message begins with the reason and a colon, and ends with the next step.
- A permitted call of a service that the listener does not serve. gRPC itself answers it, with ` + "`UNIMPLEMENTED`" + ` and
  an empty message.

` + "`go run ./services/common/errors/generate`" + ` writes this page from the table in services/common/errors/, and a
test fails when it is stale.
`

// page is docs/errors.md.
func page(sheets []*sheet) string {
	var out strings.Builder
	out.WriteString(heading)
	sheets = slices.Clone(sheets)
	slices.SortStableFunc(sheets, func(a, b *sheet) int { return cmp.Compare(a.Title, b.Title) })
	for _, s := range sheets {
		fmt.Fprintf(&out, "\n## %s\n\n| reason | code | what failed | next step |\n|---|---|---|---|\n", s.Title)
		rows := slices.Clone(s.Errors)
		slices.SortStableFunc(rows, func(a, b *entry) int { return cmp.Compare(a.Reason, b.Reason) })
		for _, e := range rows {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", e.Reason, e.Code, e.shown(e.Message), e.shown(e.Next))
		}
	}
	out.WriteString("\n## Reasons of outcomes\n\nRecords and reports carry these; no call returns them as an error. " +
		"JOB_OUTCOME_... are the outcomes\nof a job on a node.\n\n| reason or outcome | meaning | next step |\n|---|---|---|\n")
	for _, s := range sheets {
		for _, o := range s.Outcomes {
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", o.name(), o.Meaning, o.Next)
		}
	}
	return out.String()
}

// shown is a template without the signs around its optional fields.
func (e *entry) shown(template string) string {
	var out strings.Builder
	for _, p := range e.mustPieces(template) {
		if p.field == nil {
			out.WriteString(p.text)
		} else {
			out.WriteString(p.before + "{" + strings.ReplaceAll(p.field.name, "_", " ") + "}" + p.after)
		}
	}
	return strings.ReplaceAll(out.String(), "|", `\|`)
}
