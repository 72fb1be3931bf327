package listen

import (
	"cmp"
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"

	"muster.example/gateway/limits"
)

// frameKind is a kind of frames with a common limit; its text is the reason in metrics and logs.
type frameKind int

const (
	settingsFrames frameKind = iota
	pingFrames
	resetFrames
	headerFrames
	smallDataFrames
	windowFrames
	otherFrames
	frameKinds // their number
)

var frameNames = [frameKinds]string{"settings", "pings", "resets", "requests", "small_data", "window_updates", "other_frames"}

var frameLimits = [frameKinds]int{limits.FrameSettings, limits.FramePings, limits.FrameResets, limits.FrameHeaders,
	limits.FrameSmallData, limits.FrameWindowUpdates, limits.FrameOthers}

// The other reasons to close a connection.
const (
	longHeaders = "long_headers" // of one request
	allFrames   = "all_frames"   // of one source
)

// FloodReasons are all reasons for which a connection is closed.
func FloodReasons() []string { return append(frameNames[:], longHeaders, allFrames) }

const (
	frameHeaderSize    = 9  // RFC 9113
	settingsOfOneFrame = 60 // bytes; a larger frame counts more
	bytesOfOneUpdate   = 512
	mostFreeUpdates    = 1 << 16
)

// frameMeter reads the bytes that a client sends on a connection of HTTP/2, and counts the frames that cost the server work
// although they carry little data. Not safe for concurrent use, except for sent.
type frameMeter struct {
	source *source

	header   [frameHeaderSize]byte
	position int // in the header
	payload  int // bytes that are left of the frame

	block, continuations int // of the current header block
	begun                time.Time
	counts               [frameKinds]int // in the second since begun
	own                  int             // counted frames that are not those of the source yet
	freeUpdates          int             // WINDOW_UPDATE frames that the bytes which were sent explain
	sent                 func() int64    // returns and forgets the bytes that were sent to the client
}

func newFrameMeter(source *source, sent func() int64) *frameMeter {
	return &frameMeter{source: source, payload: len(http2.ClientPreface), own: limits.FramesOfConnection, sent: sent}
}

// read reads the next bytes. It returns the reason for which the connection has to be closed, or "".
func (m *frameMeter) read(p []byte, now time.Time) (excess string) {
	for len(p) > 0 && excess == "" {
		if m.payload > 0 {
			n := min(m.payload, len(p))
			m.payload -= n
			p = p[n:]
			continue
		}
		n := copy(m.header[m.position:], p)
		p = p[n:]
		if m.position += n; m.position == frameHeaderSize {
			m.position = 0
			m.payload = int(binary.BigEndian.Uint32(m.header[:4]) >> 8)
			excess = m.frame(now)
		}
	}
	return excess
}

// frame counts the frame whose header was read.
func (m *frameMeter) frame(now time.Time) string {
	switch flags := http2.Flags(m.header[4]); http2.FrameType(m.header[3]) {
	case http2.FrameHeaders:
		m.block, m.continuations = 0, 0
		return cmp.Or(m.headers(), m.count(headerFrames, 1, now))
	case http2.FrameContinuation:
		m.continuations++
		return cmp.Or(m.headers(), m.count(otherFrames, 1, now))
	case http2.FrameSettings:
		return m.count(settingsFrames, 1+m.payload/settingsOfOneFrame, now)
	case http2.FramePing:
		return m.count(pingFrames, 1, now)
	case http2.FrameRSTStream:
		return m.count(resetFrames, 1, now)
	case http2.FrameWindowUpdate:
		return m.windowUpdate(now)
	case http2.FrameData:
		// Padding is no data.
		if m.payload >= limits.SmallData && !flags.Has(http2.FlagDataPadded) {
			return ""
		}
		return m.count(smallDataFrames, 1, now)
	default:
		return m.count(otherFrames, 1, now)
	}
}

// headers counts a frame of a header block.
func (m *frameMeter) headers() string {
	if m.block += m.payload; m.block > int(limits.HeaderBlock) || m.continuations > limits.Continuations {
		return longHeaders
	}
	return ""
}

// windowUpdate counts a frame, unless the client has received enough bytes for it.
func (m *frameMeter) windowUpdate(now time.Time) string {
	if m.freeUpdates == 0 {
		m.freeUpdates = int(min(m.sent()/bytesOfOneUpdate, mostFreeUpdates))
	}
	if m.freeUpdates > 0 {
		m.freeUpdates--
		return ""
	}
	return m.count(windowFrames, 1, now)
}

// count counts a frame for the connection and for its source.
func (m *frameMeter) count(kind frameKind, cost int, now time.Time) string {
	if now.Sub(m.begun) >= time.Second {
		m.begun, m.counts = now, [frameKinds]int{}
	}
	if m.counts[kind] += cost; m.counts[kind] > frameLimits[kind] {
		return frameNames[kind]
	}
	if m.own >= cost {
		m.own -= cost
		return ""
	}
	if !m.source.count(cost, now) {
		return allFrames
	}
	return ""
}
