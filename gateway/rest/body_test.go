package rest

import "testing"

func TestHalfOfASurrogatePairIsFound(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"\ud83d"}`:               `\ud83d`,
		`{"a":"\uD83Dx"}`:              `\uD83D`,
		`{"a":"\ude00"}`:               `\ude00`,
		`{"a":"\ud83d\ud83d\ude00"}`:   `\ud83d`,
		`{"a":"\ud83d\n"}`:             `\ud83d`,
		`{"a":"\ud83d\ude00"}`:         "",
		`{"a":"\\ud83d","b":"\u00e9"}`: "", // a backslash
		`{"a":"\\\\\ud83d"}`:           `\ud83d`,
		`{}`:                           "",
	} {
		if got := halfOfPair([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
