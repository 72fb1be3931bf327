package listen

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"muster.example/gateway/limits"
)

// frameFlood writes one frame, or as many as cost one; the number of the frame makes stream ids different.
type frameFlood struct {
	name    string
	reason  string
	limit   int  // frames that are accepted in a second
	invalid bool // HTTP/2 may end the connection before
	write   func(f *http2.Framer, i int) error
}

// floods are all kinds of frames that cost work without much data.
func floods() []frameFlood {
	return []frameFlood{
		{"settings", "settings", limits.FrameSettings, false, func(f *http2.Framer, _ int) error { return f.WriteSettings() }},
		{"acknowledgements", "settings", limits.FrameSettings, true, func(f *http2.Framer, _ int) error { return f.WriteSettingsAck() }},
		{"long settings", "settings", limits.FrameSettings / 11, false, func(f *http2.Framer, _ int) error {
			return f.WriteSettings(make([]http2.Setting, 100)...)
		}},
		{"pings", "pings", limits.FramePings, false, func(f *http2.Framer, _ int) error { return f.WritePing(false, [8]byte{}) }},
		{"answers to pings", "pings", limits.FramePings, false, func(f *http2.Framer, _ int) error { return f.WritePing(true, [8]byte{}) }},
		{"resets", "resets", limits.FrameResets, false, func(f *http2.Framer, i int) error {
			return f.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
		}},
		{"requests", "requests", limits.FrameHeaders, true, func(f *http2.Framer, i int) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), EndHeaders: true})
		}},
		{"empty data", "small_data", limits.FrameSmallData, false, func(f *http2.Framer, _ int) error { return f.WriteData(1, false, nil) }},
		{"last data", "small_data", limits.FrameSmallData, true, func(f *http2.Framer, _ int) error { return f.WriteData(1, true, []byte{0}) }},
		{"padded data", "small_data", limits.FrameSmallData, true, func(f *http2.Framer, _ int) error {
			return f.WriteDataPadded(1, false, make([]byte, 1000), make([]byte, 255))
		}},
		{"window updates", "window_updates", limits.FrameWindowUpdates, false, func(f *http2.Framer, _ int) error { return f.WriteWindowUpdate(1, 1) }},
		{"priorities", "other_frames", limits.FrameOthers, false, func(f *http2.Framer, _ int) error {
			return f.WritePriority(1, http2.PriorityParam{Weight: 1})
		}},
		{"unknown frames", "other_frames", limits.FrameOthers, false, func(f *http2.Framer, _ int) error { return f.WriteRawFrame(0x77, 0, 0, nil) }},
		{"continuations", "long_headers", limits.Continuations, false, func(f *http2.Framer, _ int) error { return f.WriteContinuation(1, false, nil) }},
		{"long continuations", "long_headers", int(limits.HeaderBlock) / 8000, true, func(f *http2.Framer, _ int) error {
			return f.WriteContinuation(1, false, make([]byte, 8000))
		}},
	}
}

// meterOf returns a meter of a new source, and what its client has received.
func meterOf() (m *frameMeter, received *int64) {
	received = new(int64)
	return newFrameMeter(&source{}, func() int64 {
		n := *received
		*received = 0
		return n
	}), received
}

// preface returns a buffer with the begin of a connection, and a writer of frames to it.
func preface() (*bytes.Buffer, *http2.Framer) {
	text := bytes.NewBufferString(http2.ClientPreface)
	f := http2.NewFramer(text, nil)
	f.AllowIllegalWrites = true
	return text, f
}

func TestMeterAcceptsFramesUpToLimitOfEachKind(t *testing.T) {
	for _, flood := range floods() {
		m, _ := meterOf()
		text, f := preface()
		now := time.Now()
		for i := range flood.limit {
			if err := flood.write(f, i); err != nil {
				t.Fatal(err)
			}
		}
		if excess := m.read(text.Bytes(), now); excess != "" {
			t.Errorf("%s: %d frames are too many: %s", flood.name, flood.limit, excess)
		}
		text.Reset()
		_ = flood.write(f, flood.limit)
		if excess := m.read(text.Bytes(), now); excess != flood.reason {
			t.Errorf("%s: frame %d: %q", flood.name, flood.limit+1, excess)
		}
	}
}

func TestMeterCountsEachSecond(t *testing.T) {
	m, _ := meterOf()
	text, f := preface()
	now := time.Now()
	for i := range 5 {
		for range limits.FramePings {
			_ = f.WritePing(false, [8]byte{})
		}
		if excess := m.read(text.Bytes(), now.Add(time.Duration(i)*time.Second)); excess != "" {
			t.Errorf("second %d: %s", i, excess)
		}
		text.Reset()
	}
}

func TestMeterFindsFramesWhereverBytesAreCut(t *testing.T) {
	text, f := preface()
	for i := range limits.FrameResets + 1 {
		_ = f.WriteData(1, false, make([]byte, limits.SmallData+rand.IntN(3000)))
		_ = f.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel)
	}
	content := text.Bytes()
	m, _ := meterOf()
	now, excess := time.Now(), ""
	for len(content) > 0 && excess == "" {
		n := min(len(content), 1+rand.IntN(20))
		excess = m.read(content[:n], now)
		content = content[n:]
	}
	if excess != "resets" || len(content) > 13 {
		t.Errorf("%q with %d bytes left", excess, len(content))
	}
}

// A download at full speed has many window updates.
func TestMeterAcceptsWindowUpdatesForBytesSent(t *testing.T) {
	m, received := meterOf()
	now := time.Now()
	text, f := preface()
	for range 20 * limits.FrameWindowUpdates { // Go: two for each 4 KiB
		*received += 4 << 10
		_ = f.WriteWindowUpdate(0, 4<<10)
		_ = f.WriteWindowUpdate(1, 4<<10)
		if excess := m.read(text.Bytes(), now); excess != "" {
			t.Fatal(excess)
		}
		text.Reset()
	}
}

// The connections of a source have a limit together, beside the first frames of each.
func TestMeterCountsFramesOfSourceTogether(t *testing.T) {
	shared := &source{}
	now := time.Now()
	text, f := preface()
	for range limits.FrameOthers {
		_ = f.WritePriority(1, http2.PriorityParam{})
	}
	connections := 0
	for excess := ""; excess == ""; connections++ {
		m := newFrameMeter(shared, func() int64 { return 0 })
		if excess = m.read(text.Bytes(), now); excess != "" && excess != "all_frames" {
			t.Fatal(excess)
		}
	}
	if want := limits.FramesOfSource/(limits.FrameOthers-limits.FramesOfConnection) + 1; connections != want {
		t.Errorf("the limit was reached by connection %d, want %d", connections, want)
	}
}

func TestMeterAcceptsHeadOfSeveralFrames(t *testing.T) {
	m, _ := meterOf()
	text, f := preface()
	var block bytes.Buffer
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("~", int(limits.Header)), Sensitive: true})
	for i := range 10 {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes()[:16<<10]})
		_ = f.WriteContinuation(uint32(2*i+1), false, block.Bytes()[16<<10:32<<10])
		_ = f.WriteContinuation(uint32(2*i+1), true, block.Bytes()[32<<10:])
	}
	if excess := m.read(text.Bytes(), time.Now()); excess != "" {
		t.Error(excess)
	}
}

// The counts do not depend on the boundaries of reads.
func FuzzFrameMeter(f *testing.F) {
	text, framer := preface()
	for _, flood := range floods() {
		_ = flood.write(framer, 1)
	}
	f.Add(text.Bytes(), 7)
	f.Fuzz(func(t *testing.T, content []byte, cut int) {
		whole, _ := meterOf()
		pieces, _ := meterOf()
		now := time.Now()
		want, got := whole.read(content, now), ""
		step := max(1, cut%64)
		for len(content) > 0 && got == "" {
			n := min(step, len(content))
			got = pieces.read(content[:n], now)
			content = content[n:]
		}
		if got != want {
			t.Errorf("%q in pieces, %q as a whole", got, want)
		}
		if got == "" && (whole.payload != pieces.payload || whole.counts != pieces.counts) {
			t.Errorf("%+v, %+v", whole, pieces)
		}
	})
}
