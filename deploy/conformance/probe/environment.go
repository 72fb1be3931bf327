package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func environmentChecks() []check {
	return []check{
		{"environment.contract", "environment", true, "1", func() finding { return expect(os.Getenv("MUSTER_CONTRACT"), "1") }},
		{"environment.ids", "environment", true, "MUSTER_JOB, MUSTER_DEPLOYMENT, MUSTER_ACTION", checkIDs},
		{"environment.variables", "environment", true, "no other variables", checkVariables},
		{"environment.time-zone", "environment", false, "UTC", func() finding { return expect(time.Now().Location().String(), "UTC") }},
		{"environment.clock", "environment", true, "monotonic", checkClock},
		{"environment.entropy", "environment", true, "available", checkEntropy},
		{"environment.standard-input", "environment", true, "empty", checkStandardInput},
		{"environment.kernel", "environment", false, "", measureKernel},
	}
}

func checkIDs() finding {
	isID := func(text string) bool { return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == "" }
	for _, name := range []string{"MUSTER_JOB", "MUSTER_DEPLOYMENT"} {
		if value := os.Getenv(name); !isID(value) {
			return holds("invalid", fmt.Errorf("%s is %q, not 32 lower-case hex digits", name, value))
		}
	}
	if os.Getenv("MUSTER_ACTION") == "" {
		return holds("invalid", errors.New("MUSTER_ACTION is empty"))
	}
	return holds("valid", nil)
}

// checkVariables: a variable that Docker adds, such as that of a proxy, makes a job differ between nodes.
func checkVariables() finding {
	known := []string{"PATH", "HOSTNAME", "HOME", "MUSTER_JOB", "MUSTER_DEPLOYMENT", "MUSTER_ACTION", "MUSTER_CONTRACT"}
	var others []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(known, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	if len(others) > 0 {
		return holds(strings.Join(others, ", "), errors.New("the daemon or the policy sets other variables"))
	}
	return holds("no other variables", nil)
}

func checkClock() finding {
	const nap = 20 * time.Millisecond
	begin := time.Now()
	time.Sleep(nap)
	if passed := time.Since(begin); passed < nap {
		return holds("not monotonic", fmt.Errorf("%s passed in a sleep of %s", passed, nap))
	}
	return holds("monotonic", nil)
}

func checkEntropy() finding {
	if _, err := rand.Read(make([]byte, 32)); err != nil {
		return holds("not available", err)
	}
	return holds("available", nil)
}

func checkStandardInput() finding {
	n, err := os.Stdin.Read(make([]byte, 1))
	if n > 0 {
		return holds("not empty", errors.New("it has bytes"))
	}
	return holds("empty", ignoreEnd(err))
}

// measureKernel tells reports of different kernels apart.
func measureKernel() finding {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return holds("unknown", err)
	}
	text := func(field []byte) string { return unix.ByteSliceToString(field) }
	return holds(fmt.Sprintf("%s %s %s, cgroup v%d", text(name.Sysname[:]), text(name.Release[:]), text(name.Machine[:]), cgroupVersion()), nil)
}
