package rudder

import (
	"bytes"
	"encoding/json"
	"time"

	"muster.example/gateway/limits"
)

// sink receives the output of a remote run; false means that the receiver has stopped. The output of one node arrives
// in order, from one goroutine; several nodes use several goroutines.
type sink interface {
	start(node string) bool
	// lines receives whole lines with their ends.
	lines(node string, whole []byte) bool
	end(node string, e ending) bool
	unknown(node string) bool
}

// ending is the outcome of a remote run on one node.
type ending struct {
	code   *int // nil: the command did not exit normally
	took   time.Duration
	stderr []byte
	fault  string // why there is no code
}

// plain forwards only the lines: the strict dialect.
type plain func([]byte) bool

func (p plain) start(string) bool                 { return true }
func (p plain) lines(_ string, whole []byte) bool { return p(whole) }
func (p plain) end(node string, e ending) bool    { return true }
func (p plain) unknown(node string) bool          { return true }

// labelled writes records, and lines with the label of their node: the extended dialect.
type labelled struct {
	keep bool // forward lines, too
	emit func([]byte) bool
}

// record is a generated line about a node.
type record struct {
	Node  string `json:"node"`
	Event string `json:"event"` // start, end, unknown
	*endRecord
}

// endRecord adds the fields of an end.
type endRecord struct {
	Code     *int    `json:"code"`
	Duration int64   `json:"duration_ms"`
	Stderr   string  `json:"stderr"`
	Error    *string `json:"error"`
}

// write writes a record as a line. It is valid UTF-8 whatever a command printed.
func (l *labelled) write(r record) bool {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return l.emit(line.Bytes())
}

func (l *labelled) start(node string) bool { return l.write(record{Node: node, Event: "start"}) }

func (l *labelled) unknown(node string) bool { return l.write(record{Node: node, Event: "unknown"}) }

func (l *labelled) end(node string, e ending) bool {
	line := &endRecord{Code: e.code, Duration: e.took.Milliseconds(), Stderr: string(e.stderr)}
	if e.fault != "" {
		line.Error = &e.fault
	}
	return l.write(record{node, "end", line})
}

func (l *labelled) lines(node string, whole []byte) bool {
	if !l.keep {
		return true
	}
	var out bytes.Buffer
	for line := range bytes.Lines(whole) {
		out.WriteString(node)
		out.WriteString(": ")
		out.Write(line)
		if out.Len() >= limits.LabelledLine {
			if !l.emit(bytes.Clone(out.Bytes())) {
				return false
			}
			out.Reset()
		}
	}
	return out.Len() == 0 || l.emit(out.Bytes())
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	kept []byte
	cut  bool
}

func (f *firstBytes) Write(piece []byte) (int, error) {
	fits := min(len(piece), limits.RunStderr-len(f.kept))
	f.kept = append(f.kept, piece[:fits]...)
	f.cut = f.cut || fits < len(piece)
	return len(piece), nil
}

// bytes returns the bytes, with a mark if some were dropped.
func (f *firstBytes) bytes() []byte {
	if f.cut {
		return append(f.kept, "[cut]"...)
	}
	return f.kept
}
