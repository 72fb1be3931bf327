package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func identityChecks() []check {
	return []check{
		{"identity.user", "identity", true, "not root", checkUser},
		{"identity.capabilities", "identity", true, "none", checkCapabilities},
		{"identity.no-new-privileges", "identity", true, "1", func() finding { return expect(ofStatus("NoNewPrivs"), "1") }},
		{"identity.seccomp", "identity", true, "2", func() finding { return expect(ofStatus("Seccomp"), "2") }},
		{"identity.groups", "identity", false, "only that of the user", checkGroups},
	}
}

func checkUser() finding {
	measured := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	if os.Getuid() == 0 {
		return holds(measured, errors.New("a rule of the node's policy sets the user root"))
	}
	return holds(measured, nil)
}

func checkCapabilities() finding {
	var held []string
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if value := ofStatus(set); strings.Trim(value, "0") != "" {
			held = append(held, set+" "+value)
		}
	}
	if len(held) > 0 {
		return holds(strings.Join(held, ", "), errors.New("a process can have more rights than its user"))
	}
	return holds("none", nil)
}

func checkGroups() finding {
	groups, err := os.Getgroups()
	if err != nil {
		return holds("unknown", err)
	}
	for _, group := range groups {
		if group != os.Getgid() {
			return holds(fmt.Sprint(groups), errors.New("the user has other groups"))
		}
	}
	return holds("only that of the user", nil)
}

// ofStatus returns a field of this process in /proc, or "absent".
func ofStatus(field string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "absent"
	}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			return strings.TrimSpace(value)
		}
	}
	return "absent"
}
