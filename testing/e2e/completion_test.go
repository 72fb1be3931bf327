package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// inShell runs a script with the completion of that shell in the file _muster of its folder.
func inShell(t *testing.T, shell, script string, flags ...string) string {
	t.Helper()
	folder := t.TempDir()
	bin := must(fleet.Programs())(t)
	completion := must(exec.Command(filepath.Join(bin, fleet.Muster), "completion", shell).Output())(t)
	check(t, os.WriteFile(filepath.Join(folder, "_muster"), completion, 0o600))
	command := exec.Command(shell, append(flags, "-c", script)...)
	command.Dir = folder
	command.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + folder, "LC_ALL=C.UTF-8"}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", shell, err, output)
	}
	return string(output)
}

// Each shell loads its completion without any output, and offers its words.
func TestShellsLoadCompletion(t *testing.T) {
	bash := `source _muster && complete -p muster
		offer() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); COMPREPLY=(); _muster; echo "${COMPREPLY[@]}"; }
		offer muster retr; offer muster results --mode ''; offer muster operator a`
	if got := inShell(t, "bash", bash, "--norc"); got != "complete -F _muster muster\nretrieve\nreport detailed dump\nadd\n" {
		t.Errorf("bash printed %q", got)
	}
	// No user types here: the functions that receive the offers print them.
	zsh := `fpath=($PWD $fpath); autoload -Uz compinit && compinit -u -D && echo $_comps[muster]
		compadd() { print -r -- "$@" }; _describe() { print -rl -- "${(@P)argv[-1]%%:*}" }
		offer() { words=("$@"); CURRENT=$#; _muster }
		autoload +X _muster
		offer muster results --mode ''; offer muster operator ''`
	got := inShell(t, "zsh", zsh, "-f")
	if want := "_muster\nreport detailed dump\nadd\nrevoke\nlist\n"; !strings.HasPrefix(got, want) {
		t.Errorf("zsh printed %q, want it to begin with %q", got, want)
	}
	fish := `source _muster; complete -C "muster retr"; complete -C "muster results --mode d"; complete -C "muster operator a"`
	got = inShell(t, "fish", fish, "--no-config")
	var words []string
	for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
		word, _, _ := strings.Cut(line, "\t")
		words = append(words, word)
	}
	if offered := strings.Join(words, " "); offered != "retrieve detailed dump add" {
		t.Errorf("fish printed %q", got)
	}
}
