package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const typeScriptFile = "gateway/dashboard/src/model/next_steps.ts"

// typeScript has the next steps for the dashboard, which shows deployments: their commands run in containers.
func typeScript(sheets []*sheet) string {
	var out strings.Builder
	fmt.Fprintf(&out, "// Generated from %s by services/common/errors/generate: change that folder.\n\n", folder)
	out.WriteString("/** The next steps after the outcome of a container, by its reason or its outcome. */\n" +
		"export const nextSteps: ReadonlyMap<string, string> = new Map([\n")
	steps := nextSteps(sheets, "job", "container")
	for _, reason := range slices.Sorted(maps.Keys(steps)) {
		pair, err := json.Marshal([]string{reason, steps[reason]})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&out, "  %s,\n", pair)
	}
	out.WriteString("]);\n")
	return out.String()
}
