package main

import (
	"os"
	"testing"
)

func TestErrorsPageMatchesCode(t *testing.T) {
	want, err := page("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/errors.md is outdated: go run ./testing/errordocs")
	}
}

func TestFindsReasonsInCpp(t *testing.T) {
	const code = `return MakeError(Code::kNotFound, "RUN_NOT_FOUND", Text("there is no run \"", A(run), "\""),
                   "List the runs: muster runs.");`
	got := fromCpp("f.cc", code)
	want := entry{"RUN_NOT_FOUND", "NOT_FOUND", `there is no run "..."`, "List the runs: muster runs.", "f.cc"}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFindsReasonsInGo(t *testing.T) {
	got := fromGo("f.go", `answer(w, code, problem{fmt.Sprintf("no path %s", p), "PATH_NOT_FOUND", "Look it up."})
		return &Error{Code: "UNAVAILABLE", Reason: "NOT_CONFIGURED", Message: "no service", NextStep: "Name one."}`)
	want := []entry{{"PATH_NOT_FOUND", "", "no path ...", "Look it up.", "f.go"},
		{"NOT_CONFIGURED", "UNAVAILABLE", "no service", "Name one.", "f.go"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
