package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster.example/testing/limits/table"
)

const heading = `# Limits

Every queue, stream, body, table and wait has a limit for each identity and for the whole process, so that one credential
can never harm the work of another. An honest client meets none of them. A caller that exceeds one gets the refusal of
its row; everything accepted before stays.

A limit is for each of what stands in the column "per"; "in all" is for all callers of a program together. A limit with
a key is set in the configuration of the program. The others are constants, because a wrong value costs more than it
gains.

` + "`go run ./testing/limits/generate`" + ` writes this page from the tables in services/common/limits/ and
gateway/limits/. A test compares each row with the programs: the constant, the key, the metric and the reason have to exist,
and the number of the constant is that of the row.
The column "test" names the test that fails if the limit does not hold. The last column says how the limit is exhausted over the
network with the real programs. "walk" is TestLimitsAreExhaustedOverTheWire: with one credential or none, while another client
measures its latency. "its test" is another end-to-end test. For the other rows the column says why not. %d of %d rows are
walked, %d have another end-to-end test, and %d a test with a real listener in its process.
`

// page is docs/limits.md.
func page(sheets []*table.Sheet) string {
	var out strings.Builder
	count := map[string]int{}
	rows := 0
	for _, s := range sheets {
		for _, l := range s.Limits {
			count[l.WireText()]++
			rows++
		}
	}
	fmt.Fprintf(&out, heading, count["walk"], rows, count["its test"], count[table.Limit{Wire: "listener"}.WireText()])
	sheets = slices.Clone(sheets)
	slices.SortStableFunc(sheets, func(a, b *table.Sheet) int { return cmp.Compare(a.Title, b.Title) })
	for _, s := range sheets {
		fmt.Fprintf(&out, "\n## %s\n\n| what | limit | per | key | metric | beyond it | what to do | test | over the network |\n|---|---|---|---|---|---|---|---|---|\n",
			s.Title)
		for _, l := range s.Limits {
			then := l.Then
			if l.Reason != "" {
				then = strings.TrimSuffix("`"+l.Reason+"`: "+then, ": ")
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", cell(l.Bounds), cell(l.Value), cell(l.Per), code(l.Key), code(l.Metric),
				cell(then), cell(l.Do), code(l.Guard), l.WireText())
		}
	}
	return out.String()
}

func cell(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "|", `\|`) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
