package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The version exists once for C++ and once for Go: they have to agree.
func TestVersionMatchesHeader(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"--version"}, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatal(code, errs.String())
	}
	header, err := os.ReadFile("../../../services/common/version.h")
	if err != nil {
		t.Fatal(err)
	}
	if want := "kVersion = \"" + strings.TrimSpace(out.String()) + "\";"; !strings.Contains(string(header), want) {
		t.Errorf("version.h does not contain %s", want)
	}
}
