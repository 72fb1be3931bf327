package config

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// A file is refused with a line for each mistake, or its values survive being printed and read again.
func FuzzConfigSurvivesPrintOrIsRefused(f *testing.F) {
	example := Default()
	example.StateFolder, example.StatusOrigins = "/var/lib/muster", []string{"https://host"}
	for _, text := range []string{
		example.Print(), "state_folder: /x\nrudder:\n  node_id: \"\\x01\\u00ff'\"\n  remote_run_command: [a, \"b\\tc\", 'd, e']\n",
		"a: &a {b: *a}\n", "drain: 1h0m0s\nlimits: {result_bytes: 8191KiB}\n", "listen: !!binary aGk=\n", "---\n...\n---\n", "{[a]: b}",
		"state_folder: |\n  /x\n  y\n", "legacy_ports: 65535-65536\n", "listen: null\n", "# only a comment\n", "\ufeffdrain: 5s\n", "lisen: x\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		config := Default()
		if err := config.bind().load(text, "f"); err != nil {
			for line := range strings.Lines(err.Error()) {
				if !utf8.ValidString(line) || len(line) > 1024+2*len(text) {
					t.Errorf("%q", line)
				}
			}
			return
		}
		if config.StateFolder == "" {
			config.StateFolder = "/required"
		}
		again, printed := Default(), config.Print()
		if err := again.bind().load(printed, "f"); err != nil {
			t.Fatalf("%s\n%s", err, printed)
		}
		for _, each := range []*Config{config, again} { // an absent list and an empty one are the same
			value := reflect.ValueOf(each).Elem()
			clearEmpty(value)
		}
		if !reflect.DeepEqual(config, again) {
			t.Errorf("%+v became %+v", config, again)
		}
	})
}

// clearEmpty makes empty lists nil.
func clearEmpty(value reflect.Value) {
	for i := range value.NumField() {
		switch field := value.Field(i); {
		case field.Kind() == reflect.Struct:
			clearEmpty(field)
		case field.Kind() == reflect.Slice && field.Len() == 0:
			field.SetZero()
		}
	}
}
