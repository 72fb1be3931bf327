package table

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// walk is the test that exhausts many rows over the network (testing/e2e).
const walk = "testing/e2e/limits_walk_test.go:TestLimitsAreExhaustedOverTheWire"

// Why a row is not exhausted over the network by the real programs, and what has to be true of such a row.
var reasonsOfWire = map[string]struct {
	Text string
	fits func(l Limit, test string) bool // `test`: the text of its test in Go, or of the file of its test
}{
	"listener": {"its test has a real listener in its process", func(_ Limit, test string) bool {
		return realListener.MatchString(test) && !strings.Contains(test, "synctest.Test(")
	}},
	"inside":  {"no peer is refused: it bounds the work of the program", func(l Limit, _ string) bool { return l.Reason == "" }},
	"local":   {"it is on the machine of the command line, the agent or the gateway", func(l Limit, _ string) bool { return localFile.MatchString(l.At + l.Guard) }},
	"content": {"it depends on the content of what was accepted", func(l Limit, _ string) bool { return contentTest.MatchString(l.Guard) }},
	"total":   {"it is for all together: limits of one caller are reached before", func(l Limit, _ string) bool { return allTogether.MatchString(l.Per) }},
	"time":    {"it needs more time than the walk has", func(l Limit, _ string) bool { return timeSpan.MatchString(l.Value + " " + l.Bounds) }},
	"amount":  {"it needs more peers, bytes or calls than the walk sends", func(l Limit, _ string) bool { return largeAmount.MatchString(l.Value) }},
	"fault":   {"a service has to be silent for it", func(l Limit, _ string) bool { return silentService.MatchString(l.Bounds) }},
	"rudder":  {"the walk has no listener for Rudder", func(l Limit, _ string) bool { return strings.HasPrefix(l.Guard, "gateway/rudder/") }},
	"moment":  {"it is reached only while the service is slower than its callers", func(l Limit, _ string) bool { return queue.MatchString(l.Bounds) }},
}

var (
	realListener = regexp.MustCompile(`httptest\.NewServer|net\.Listen|net\.Dial\(|tls\.Dial|\bcall\(|\.(call|dial|put|reach|relay)\(|\b(start|open|run|new)\w*\(t|` +
		`MakeChannel|Stub\b|IssueNode|TestFleet|TestServer|NodeClient`)
	localFile     = regexp.MustCompile(`^(cli|services/agent|services/client|services/common/tunnel|gateway/config|gateway/logs|gateway/cmd)/`)
	contentTest   = regexp.MustCompile(`^services/(common/archive|agent/jobs)/`)
	allTogether   = regexp.MustCompile(`in all|plugin of a run|^gateway$`)
	timeSpan      = regexp.MustCompile(`\d ?(s|min|h|days)\b|pace`)
	largeAmount   = regexp.MustCompile(`\d,\d{3}|\d{4,}|[KMGT]iB|%|\b([2-9]\d|\d{3})\b`)
	queue         = regexp.MustCompile(`wait|queue|upstream|ahead|reset|at a time|refusals`)
	silentService = regexp.MustCompile(`service|forward|fetch`)
)

// WireText returns how a row is exhausted over the network, or why it is not.
func (l Limit) WireText() string {
	switch {
	case l.Guard == walk:
		return "walk"
	case strings.HasPrefix(l.Guard, "testing/e2e/"):
		return "its test"
	}
	return reasonsOfWire[l.Wire].Text
}

// CheckWire returns what is wrong with the reason of a row.
func (l Limit) CheckWire(root string) error {
	if strings.HasPrefix(l.Guard, "testing/e2e/") {
		if l.Wire != "" {
			return fmt.Errorf("%q is exhausted over the network, and says why not (wire: %s)", l.Bounds, l.Wire)
		}
		return nil
	}
	reason, found := reasonsOfWire[l.Wire]
	if !found {
		return fmt.Errorf("%q is not exhausted over the network, and wire: %q is no reason (testing/limits/table/wire.go)", l.Bounds, l.Wire)
	}
	file, name, _ := strings.Cut(l.Guard, ":")
	test, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	if !reason.fits(l, bodyOf(name, string(test))) {
		return fmt.Errorf("%q: wire: %s does not hold: %s", l.Bounds, l.Wire, reason.Text)
	}
	return nil
}

// bodyOf returns the function of a test in Go; for another name, the whole file.
func bodyOf(name, file string) string {
	_, after, found := strings.Cut(file, "func "+name+"(")
	if !found {
		return file
	}
	body, _, _ := strings.Cut(after, "\n}\n")
	return body
}
