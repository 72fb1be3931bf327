package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// status is the result of a probe.
type status string

const (
	pass status = "pass"
	// warn is a failure of a probe that is not required.
	warn status = "warn"
	fail status = "fail"
	// skip: the probe does not apply here, or only measures.
	skip status = "skip"
)

// reportVersion is the version of the report's format. It changes when the meaning of a field does.
const reportVersion = 1

// probe compares one property of the container with the contract of deployments (docs/agent.md).
type probe struct {
	// ID never changes: reports of different versions are compared by it.
	ID       string `json:"id"`
	Area     string `json:"area"`
	Required bool   `json:"required"`
	Status   status `json:"status"`
	Measured string `json:"measured"`
	Expected string `json:"expected,omitempty"`
	// Text is for people: the reason of a failure or a skip.
	Text string `json:"text,omitempty"`
}

// report is the output `report` of the template type.
type report struct {
	Version int `json:"version"`
	// Status is fail if a required probe failed, else warn if another one failed, else pass.
	Status status  `json:"status"`
	Probes []probe `json:"probes"`
}

// finding is what a check found.
type finding struct {
	// measured describes the environment. It contains nothing that differs between two runs on one node, such as a time,
	// so that reports can be compared.
	measured string
	// failure is why the property does not hold; nil if it does.
	failure error
	// skipped is why the property was not checked; empty if it was.
	skipped string
}

// check is one probe that can be run.
type check struct {
	id       string
	area     string
	required bool
	expected string
	run      func() finding
}

func (c check) probe() probe {
	found := c.run()
	p := probe{ID: c.id, Area: c.area, Required: c.required, Status: pass, Measured: found.measured, Expected: c.expected}
	switch {
	case found.skipped != "":
		p.Status, p.Text = skip, found.skipped
	case found.failure != nil:
		p.Status, p.Text = warn, found.failure.Error()
		if c.required {
			p.Status = fail
		}
	}
	return p
}

func newReport(checks []check) report {
	r := report{Version: reportVersion, Status: pass}
	for _, c := range checks {
		p := c.probe()
		if p.Status == fail || (p.Status == warn && r.Status == pass) {
			r.Status = p.Status
		}
		r.Probes = append(r.Probes, p)
	}
	return r
}

// write stores the report as an output of the deployment, in one step.
func (r report) write(folder string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	whole := filepath.Join(folder, "report")
	temporary := filepath.Join(filepath.Dir(folder), ".report")
	return errors.Join(os.WriteFile(temporary, text, 0o644), os.Rename(temporary, whole))
}

// print prints one line for each probe.
func (r report) print() {
	for _, p := range r.Probes {
		line := fmt.Sprintf("%-4s  %-28s %s", p.Status, p.ID, p.Measured)
		if p.Text != "" {
			line += ": " + p.Text
		}
		fmt.Println(line)
	}
	fmt.Println("conformance:", r.Status)
}

// expect returns a finding that fails unless it was measured as expected.
func expect(measured, expected string) finding {
	found := finding{measured: measured}
	if measured != expected {
		found.failure = fmt.Errorf("expected %s", expected)
	}
	return found
}

// holds returns a finding of a property that does or does not hold.
func holds(measured string, failure error) finding {
	return finding{measured: measured, failure: failure}
}

func skipped(why string) finding { return finding{skipped: why} }
