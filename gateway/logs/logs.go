// Package logs writes log lines in the format of all Muster services (services/common/base/log.h): as text or JSON,
// with the run, plugin and node that they concern.
package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"muster.example/gateway/limits"
)

const (
	service = "muster-gateway"
)

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warning": slog.LevelWarn, "error": slog.LevelError,
}

// New returns a logger from a level on (debug, info, warning, error), in a format (text, json).
func New(to io.Writer, format, level string) *slog.Logger {
	return slog.New(&handler{to: to, lock: new(sync.Mutex), json: format == "json", level: levels[level]})
}

// handler implements slog.Handler.
type handler struct {
	to    io.Writer
	lock  *sync.Mutex // of `to`
	json  bool
	level slog.Level
	with  []slog.Attr
	group string
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *handler) WithAttrs(attributes []slog.Attr) slog.Handler {
	more := *h
	more.with = append(h.with[:len(h.with):len(h.with)], h.named(attributes)...)
	return &more
}

func (h *handler) WithGroup(name string) slog.Handler {
	more := *h
	more.group += name + "."
	return &more
}

func (h *handler) named(attributes []slog.Attr) []slog.Attr {
	named := make([]slog.Attr, len(attributes))
	for i, attribute := range attributes {
		named[i] = slog.Attr{Key: h.group + attribute.Key, Value: attribute.Value}
	}
	return named
}

func (h *handler) Handle(_ context.Context, record slog.Record) error {
	all := h.with[:len(h.with):len(h.with)]
	record.Attrs(func(attribute slog.Attr) bool {
		all = append(all, h.named([]slog.Attr{attribute})...)
		return true
	})
	line := textLine(record, all)
	if h.json {
		line = jsonLine(record, all)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	_, err := io.WriteString(h.to, line+"\n")
	return err
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func levelName(level slog.Level) string {
	for name, l := range levels {
		if l == level {
			return name
		}
	}
	return strings.ToLower(level.String())
}

func cut(text string) string { return text[:min(len(text), limits.LogValue)] }

func jsonLine(record slog.Record, attributes []slog.Attr) string {
	var line strings.Builder
	fmt.Fprintf(&line, `{"time":%q,"level":%q,"service":%q,"message":%s`,
		timestamp(record.Time), levelName(record.Level), service, asJSON(cut(record.Message)))
	for _, attribute := range attributes {
		line.WriteString("," + asJSON(attribute.Key) + ":")
		value := attribute.Value.Resolve()
		switch value.Kind() {
		case slog.KindInt64, slog.KindUint64, slog.KindBool:
			line.WriteString(value.String())
		case slog.KindFloat64:
			line.WriteString(asJSON(value.Float64()))
		default:
			line.WriteString(asJSON(cut(value.String())))
		}
	}
	return line.String() + "}"
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // a number that JSON cannot represent
		return strconv.Quote(fmt.Sprint(value))
	}
	return string(text)
}

func textLine(record slog.Record, attributes []slog.Attr) string {
	label := map[slog.Level]string{slog.LevelDebug: "DEBUG", slog.LevelInfo: "INFO ", slog.LevelWarn: "WARN ", slog.LevelError: "ERROR"}
	message := strconv.Quote(cut(record.Message))
	line := timestamp(record.Time) + " " + label[record.Level] + " " + strings.ReplaceAll(message[1:len(message)-1], `\"`, `"`)
	for _, attribute := range attributes {
		value := cut(attribute.Value.Resolve().String())
		if value == "" || !utf8.ValidString(value) || strings.ContainsFunc(value, needsQuotes) {
			value = strconv.Quote(value)
		}
		line += " " + attribute.Key + "=" + value
	}
	return line
}

func needsQuotes(r rune) bool {
	return r == ' ' || r == '"' || r == '=' || r == '\\' || unicode.IsControl(r)
}
