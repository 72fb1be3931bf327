// The program of the conformance image. It compares the container that it runs in with the contract of deployments
// (docs/agent.md, "Deployments"), prints a line for each probe, and writes the output `report`.
//
// It exits with 0 if the report was written, whatever it says, because outputs of a container that fails are not read. With
// --strict it exits with 3 after a failure of a required probe, and with 4 after another one.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
)

const (
	stateFolder = "/state"
	exitError   = 1
	exitFail    = 3
	exitWarn    = 4
)

// declared are the parameters: the limits in the document of the type.
type declared struct {
	MemoryBytes int64   `json:"memory_bytes"`
	CPUs        float64 `json:"cpus"`
	Processes   int64   `json:"processes"`
	Network     string  `json:"network"`
}

func main() {
	if len(os.Args) > 1 && isHelper(os.Args[1]) {
		os.Exit(runHelper(os.Args[1:]))
	}
	strict := flag.Bool("strict", false, "exit with 3 if a required probe failed, with 4 if another one did")
	flag.Parse()
	r, err := probeAll()
	if err == nil {
		r.print()
		err = r.write(stateFolder + "/outputs")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(exitError)
	}
	if *strict {
		os.Exit(map[status]int{fail: exitFail, warn: exitWarn}[r.Status])
	}
}

func probeAll() (report, error) {
	text, err := os.ReadFile(stateFolder + "/parameters.json")
	if err != nil {
		return report{}, fmt.Errorf("this is no container of a deployment: %w", err)
	}
	var limits declared
	if err := json.Unmarshal(text, &limits); err != nil {
		return report{}, fmt.Errorf("%s/parameters.json: %w", stateFolder, err)
	}
	var checks []check
	checks = append(checks, filesystemChecks()...)
	checks = append(checks, identityChecks()...)
	checks = append(checks, environmentChecks()...)
	checks = append(checks, limitChecks(limits)...)
	checks = append(checks, processChecks()...)
	checks = append(checks, networkChecks(limits.Network)...)
	checks = append(checks, outputChecks()...)
	return newReport(checks), nil
}

func bytesText(bytes int64) string { return strconv.FormatInt(bytes, 10) + " bytes" }
