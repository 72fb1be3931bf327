// Launch starts the program of a container with its parameters and secrets in the environment. It is the first program of
// the images of deploy/types:
//
//	launch [-env PREFIX] [-secrets PREFIX] [--] COMMAND [ARGUMENT...]
//	launch -outputs FILE
//
// With -env each parameter of /state/parameters.json is a variable: the prefix and its name, in which characters that a shell
// does not admit are "_". Texts are as they are, other values as JSON. With -secrets so is each file of /secrets. With
// -outputs it writes what `terraform output -json` has printed to /state/outputs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	parametersFile = "/state/parameters.json"
	secretsFolder  = "/secrets"
	outputsFolder  = "/state/outputs"
)

func main() {
	environment := flag.String("env", "", "the prefix of the variables of parameters")
	secrets := flag.String("secrets", "", "the prefix of the variables of secrets")
	outputs := flag.String("outputs", "", "the file with the outputs of Terraform")
	flag.Parse()
	run := func() error { return launch(*environment, *secrets, flag.Args()) }
	if *outputs != "" {
		run = func() error { return writeOutputs(*outputs, outputsFolder) }
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "launch: %v\n", err)
		os.Exit(1)
	}
}

// launch replaces this process by the command.
func launch(environment, secrets string, command []string) error {
	if len(command) == 0 {
		return errors.New("no command is given")
	}
	variables := map[string]string{}
	if environment != "" {
		if err := addParameters(parametersFile, environment, variables); err != nil {
			return err
		}
	}
	if secrets != "" {
		if err := addSecrets(secretsFolder, secrets, variables); err != nil {
			return err
		}
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, command, merged(os.Environ(), variables))
}

// variable returns the name of a variable; only the prefix may have other characters than a shell admits.
func variable(prefix, name string) string {
	return prefix + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// add sets a variable. Two names must not be the same variable.
func add(prefix, name, value string, variables map[string]string) error {
	key := variable(prefix, name)
	if _, found := variables[key]; found {
		return fmt.Errorf("two names are the variable %s; rename %q", key, name)
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %q has a NUL byte, which a variable cannot have", name)
	}
	variables[key] = value
	return nil
}

func addParameters(file, prefix string, variables map[string]string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var parameters map[string]json.RawMessage // numbers keep their text
	if err := json.Unmarshal(text, &parameters); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for name, value := range parameters {
		shown := string(value)
		if strings.HasPrefix(shown, `"`) {
			if err := json.Unmarshal(value, &shown); err != nil {
				return fmt.Errorf("%s: %s: %w", file, name, err)
			}
		}
		if err := add(prefix, name, shown, variables); err != nil {
			return err
		}
	}
	return nil
}

// addSecrets adds the files of a folder, which need not exist.
func addSecrets(folder, prefix string, variables map[string]string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		// The name of a secret has no dot: others are of the agent, such as the token of its Vault.
		if !entry.Type().IsRegular() || strings.Contains(entry.Name(), ".") {
			continue
		}
		value, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		if err := add(prefix, entry.Name(), string(value), variables); err != nil {
			return err
		}
	}
	return nil
}

// merged returns the environment with these variables in the place of those with the same names.
func merged(environment []string, variables map[string]string) []string {
	all := slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, found := variables[name]
		return found
	})
	for name, value := range variables {
		all = append(all, name+"="+value)
	}
	return all
}

// writeOutputs writes the value of each output as JSON to a file of its name.
func writeOutputs(file, folder string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var outputs map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal(text, &outputs); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for name, output := range outputs {
		if name != filepath.Base(name) {
			return fmt.Errorf("the output %q is not the name of a file", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), output.Value, 0o644); err != nil {
			return err
		}
	}
	return nil
}
