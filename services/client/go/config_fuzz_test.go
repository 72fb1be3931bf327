package muster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"
)

// A credentials file is refused, or its fields survive being written and read again.
func FuzzCredentialsSurviveWritingOrAreRefused(f *testing.F) {
	for _, text := range []string{
		`{"grpc_targets":["h:1"],"run":"00000000000000aa","done_file_delay":"1m30s","deadline":"2026-11-21T14:00:00Z","max_result_bytes":1}`,
		`{"mode":"x","deadline":"2026-11-21T14:00:00.5+23:59"}`, `{"run":null}`, `{"max_result_bytes":9223372036854775808}`, `null`, `{} {}`,
		`{"done_file_delay":"-5s"}`, `{"client_key":"\ud800"}`, "{\"r\xff\":1}", `{"Run":"x"}`,
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "node.json")
	read := func(t *testing.T, content []byte) (*Config, error) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		config := &Config{}
		return config, config.readFile(path)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		config, err := read(t, content)
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 1024+6*len(content) {
				t.Errorf("%q", err)
			}
			return
		}
		written, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		again, err := read(t, written)
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if !config.Deadline.Equal(again.Deadline) {
			t.Errorf("%s became %s", config.Deadline, again.Deadline)
		}
		config.Deadline, again.Deadline = time.Time{}, time.Time{} // the zones differ in memory
		for _, each := range []*Config{config, again} {
			if len(each.GRPCTargets) == 0 {
				each.GRPCTargets = nil
			}
			if len(each.StatusTargets) == 0 {
				each.StatusTargets = nil
			}
		}
		if !reflect.DeepEqual(config, again) {
			t.Errorf("%+v became %+v", config, again)
		}
	})
}
