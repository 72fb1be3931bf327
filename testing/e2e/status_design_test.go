package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is one list of commands of a page, with the expected output.
type block struct{ commands, prints []string }

// blocks reads the blocks of one section of a page.
func blocks(t *testing.T, page, section string) []block {
	t.Helper()
	_, text, found := strings.Cut(string(must(os.ReadFile(page))(t)), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var all []block
	for _, fence := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		var b block
		for _, line := range strings.Split(strings.TrimSpace(fence[1]), "\n") {
			if want, found := strings.CutPrefix(line, "# "); found {
				b.prints = append(b.prints, want)
			} else {
				b.commands = append(b.commands, line)
			}
		}
		all = append(all, b)
	}
	return all
}

// The commands of the original design in docs/status.md work as documented.
func TestOriginalDesignCommandsWork(t *testing.T) {
	t.Parallel()
	f := up(t)
	all := blocks(t, "../../docs/status.md", "The original design, line by line")
	var script strings.Builder
	for i, b := range all {
		commands := strings.Join(b.commands, "\n")
		if strings.Contains(commands, "/tmp/") {
			commands = "" // TestCredentialsFileInOriginalPlaceIsUsedSafely runs it in a private /tmp
		}
		fmt.Fprintf(&script, "echo @block %d\n%s\n", i, commands)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "/bin/sh", "-c", script.String())
	shell.Dir, shell.WaitDelay = t.TempDir(), soon
	shell.Env = append(os.Environ(), "MUSTER_HOME="+f.Home, "PATH="+f.Bin+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	shell.Stderr = &stderr
	out, err := shell.Output()
	if err != nil {
		t.Errorf("%v", err)
	}
	for i, b := range all {
		_, printed, _ := strings.Cut(string(out), fmt.Sprintf("@block %d\n", i))
		printed, _, _ = strings.Cut(printed, "@block")
		want := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(b.prints, "\n")), `\.\.\.`, ".*")
		if !regexp.MustCompile("^" + want + "$").MatchString(strings.TrimSpace(printed)) {
			t.Errorf("%s\nprints\n%s\nwant\n%s", strings.Join(b.commands, "\n"), printed, strings.Join(b.prints, "\n"))
		}
	}
	if len(all) < 15 {
		t.Errorf("only %d lists of commands were found", len(all))
	}
	if t.Failed() {
		t.Log(stderr.String())
	}
}
