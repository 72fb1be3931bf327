package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParametersAndSecretsAreVariables(t *testing.T) {
	folder := t.TempDir()
	file := write(t, folder, "parameters.json", `{"region": "eu \"1\"\n", "price": 0.10, "zones-all": ["a", 1], "on": true, "none": null}`)
	secrets := filepath.Join(folder, "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, secrets, "db_password", "s3cret\n")
	write(t, secrets, "vault.token", "t")
	variables := map[string]string{}
	if err := addParameters(file, "TF_VAR_", variables); err != nil {
		t.Fatal(err)
	}
	if err := addSecrets(secrets, "SECRET_", variables); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"TF_VAR_region": "eu \"1\"\n", "TF_VAR_price": "0.10", "TF_VAR_zones_all": `["a", 1]`,
		"TF_VAR_on": "true", "TF_VAR_none": "null", "SECRET_db_password": "s3cret\n"} {
		if got := variables[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, found := variables["SECRET_vault_token"]; found {
		t.Error("the token of Vault is a variable")
	}
	if all := merged([]string{"PATH=/bin", "TF_VAR_on=old"}, variables); !slices.Contains(all, "PATH=/bin") || slices.Contains(all, "TF_VAR_on=old") {
		t.Errorf("the environment is %v", all)
	}
	if err := addSecrets(filepath.Join(folder, "missing"), "SECRET_", variables); err != nil {
		t.Error(err)
	}
}

func TestVariablesThatCannotBeSetAreErrors(t *testing.T) {
	folder := t.TempDir()
	for text, want := range map[string]string{
		`{"a-b": 1, "a.b": 2}`: "two names are the variable P_a_b",
		`{"a": "x\u0000y"}`:    "NUL byte",
		`[1]`:                  "cannot unmarshal",
	} {
		err := addParameters(write(t, folder, "parameters.json", text), "P_", map[string]string{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := launch("", "", nil); err == nil {
		t.Error("no command is no error")
	}
}

func TestOutputsOfTerraformAreFiles(t *testing.T) {
	folder := t.TempDir()
	file := write(t, folder, "all", `{"address": {"sensitive": false, "type": "string", "value": "10.0.0.1"}, "ports": {"value": [80, 443]}}`)
	outputs := filepath.Join(folder, "outputs")
	if err := os.Mkdir(outputs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeOutputs(file, outputs); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"address": `"10.0.0.1"`, "ports": "[80, 443]"} {
		if got, err := os.ReadFile(filepath.Join(outputs, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
	if err := writeOutputs(write(t, folder, "all", `{"../x": {"value": 1}}`), outputs); err == nil {
		t.Error("an output outside of the folder is written")
	}
}
