package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func lines(format, level string, write func(*slog.Logger)) []string {
	var out strings.Builder
	write(New(&out, format, level))
	text := regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`).ReplaceAllString(out.String(), "T")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func write(log *slog.Logger) {
	log = log.With("run", "aa")
	log.Debug("dropped")
	log.Info("result stored", "bytes", 5, "seconds", 0.5, "again", true, "node", "n 1")
	log.Warn("a \"quoted\"\nmessage", "error", errors.New("x=1\ny"), "empty", "", "raw", "\xff", "far", math.Inf(1))
	log.WithGroup("g").Error("bad", "k", strings.Repeat("x", 5000))
}

func TestTextLinesMatchServices(t *testing.T) {
	got := lines("text", "info", write)
	for i, want := range []string{
		`T INFO  result stored run=aa bytes=5 seconds=0.5 again=true node="n 1"`,
		`T WARN  a "quoted"\nmessage run=aa error="x=1\ny" empty="" raw="\xff" far=+Inf`,
		`T ERROR bad run=aa g.k=` + strings.Repeat("x", 4096),
	} {
		if i >= len(got) || got[i] != want {
			t.Errorf("line %d: got %.200q, want %.200q", i, got, want)
		}
	}
}

func TestJSONLinesMatchServices(t *testing.T) {
	got := lines("json", "debug", write)
	want := `{"time":"T","level":"info","service":"muster-gateway","message":"result stored","run":"aa","bytes":5,"seconds":0.5,"again":true,"node":"n 1"}`
	if len(got) != 4 || got[1] != want {
		t.Errorf("got %.400q, want %q", got, want)
	}
	for _, line := range got {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Errorf("%v in %.200s", err, line)
		}
	}
	if !strings.Contains(got[2], `"level":"warning"`) {
		t.Error(got[2])
	}
}

func TestFileIsRotatedBeforeItIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.log")
	for start := range 2 { // appends after a restart
		file, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file.largest = 20
		for i := range 8 {
			fmt.Fprintf(file, "line %d%d ..\n", start, i) // 11 bytes
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"": "line 17 ..\n", ".1": "line 16 ..\n", ".2": "line 15 ..\n", ".3": "line 14 ..\n"} {
		if text, err := os.ReadFile(path + name); string(text) != want {
			t.Errorf("%s holds %q (%v), want %q", name, text, err, want)
		}
	}
	if _, err := os.Stat(path + ".4"); err == nil {
		t.Error("there is a fifth file")
	}
	if _, err := OpenFile(filepath.Join(path, "x")); err == nil || !strings.Contains(err.Error(), "log.file") {
		t.Error(err)
	}
}

func TestLinesContinueInTheFileThatCannotBeRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.log")
	file, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.largest = 20
	// A file cannot replace a folder.
	if err := errors.Join(os.Mkdir(path+".last", 0o700), os.WriteFile(path+".1", []byte("old\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	want := ""
	for i := range 3 {
		line := fmt.Sprintf("line %d ...\n", i)
		if _, err := file.Write([]byte(line)); err != nil {
			t.Error(err)
		}
		want += line
		file.retry = time.Time{} // the wait is over
	}
	if text, err := os.ReadFile(path); string(text) != want {
		t.Errorf("%q (%v), want %q", text, err, want)
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("the new file is left: %v", err)
	}
	if text, err := os.ReadFile(path + ".1"); string(text) != "old\n" {
		t.Errorf("the old file holds %q (%v)", text, err)
	}
	if err := os.Remove(path + ".last"); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(file, "last\n")
	if text, err := os.ReadFile(path); string(text) != "last\n" {
		t.Errorf("%q %v", text, err)
	}
}

func TestOldFileThatCannotBeNumberedDoesNotStopRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.log")
	file, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.largest = 20
	if err := errors.Join(os.Mkdir(path+".3", 0o700), os.WriteFile(path+".2", []byte("old\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		fmt.Fprintf(file, "line %d ...\n", i)
	}
	for name, want := range map[string]string{"": "line 2 ...\n", ".last": "line 1 ...\n", ".2": "old\n"} {
		if text, err := os.ReadFile(path + name); string(text) != want {
			t.Errorf("%s holds %q (%v), want %q", name, text, err, want)
		}
	}
}
