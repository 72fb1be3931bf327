package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

func networkChecks(network string) []check {
	if network == "none" {
		return []check{
			{"network.interfaces", "network", true, "only loopback", checkNoInterface},
			{"network.names", "network", true, "not resolved", checkNoNames},
		}
	}
	return []check{{"network.interfaces", "network", true, "an address", checkInterface}}
}

// addresses returns those that are not loopback.
func addresses() ([]string, error) {
	all, err := net.InterfaceAddrs()
	var others []string
	for _, address := range all {
		if prefix, ok := address.(*net.IPNet); ok && !prefix.IP.IsLoopback() {
			others = append(others, prefix.String())
		}
	}
	return others, err
}

func checkNoInterface() finding {
	others, err := addresses()
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("the container has %s", strings.Join(others, ", "))
	}
	if err != nil {
		return holds("others", err)
	}
	return holds("only loopback", nil)
}

func checkInterface() finding {
	others, err := addresses()
	if err == nil && len(others) == 0 {
		err = errors.New("the container has only loopback")
	}
	if err != nil {
		return holds("none", err)
	}
	return holds("an address", nil)
}

func checkNoNames() finding {
	if found, err := net.LookupHost("conformance.invalid"); err == nil {
		return holds("resolved", fmt.Errorf("a name that does not exist is %s", strings.Join(found, ", ")))
	}
	return holds("not resolved", nil)
}
