package logs

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"

	"google.golang.org/grpc/grpclog"
)

// grpcLogger implements grpclog.LoggerV2. grpc-go and grpc-gateway report broken connections of peers as errors, so
// errors become warnings, and everything else has the level debug.
type grpcLogger struct {
	log     *slog.Logger
	limiter Limiter
}

// NewGRPC returns a logger for grpclog.SetLoggerV2 that writes at most one line a minute for each message and source.
func NewGRPC(log *slog.Logger) grpclog.LoggerV2 { return &grpcLogger{log: log} }

// brokenReader are the beginnings of grpc-gateway's errors about a client that went away or is refused.
var brokenReader = []string{"Failed to send ", "Failed to flush ", "Failed to write response", "Failed to notify error to client",
	"Rewrite error"}

// remoteEnd is the remote address in an error of a connection, such as "write tcp 10.0.0.1:443->10.0.0.2:5000: broken pipe".
var remoteEnd = regexp.MustCompile(`->([^ ]+:[0-9]+)`)

func (g *grpcLogger) write(level slog.Level, text string) {
	text = strings.TrimSpace(text)
	message, cause, _ := strings.Cut(text, ": ")
	for _, beginning := range brokenReader {
		if strings.HasPrefix(text, beginning) {
			level = slog.LevelDebug // as connections that went away: inspect.Metrics.RefusedHandshake
		}
	}
	if !g.log.Enabled(context.Background(), level) {
		return
	}
	source := ""
	if found := remoteEnd.FindStringSubmatch(cause); found != nil {
		source, _, _ = net.SplitHostPort(found[1])
	}
	g.limiter.Note(level.String(), message+" "+source, func(count int) {
		attributes := []any{"count", count}
		if cause != "" {
			attributes = append(attributes, "error", cause)
		}
		g.log.Log(context.Background(), level, "gRPC: "+message, attributes...)
	})
}

func (g *grpcLogger) Info(args ...any)   { g.write(slog.LevelDebug, fmt.Sprint(args...)) }
func (g *grpcLogger) Infoln(args ...any) { g.write(slog.LevelDebug, fmt.Sprintln(args...)) }
func (g *grpcLogger) Infof(format string, args ...any) {
	g.write(slog.LevelDebug, fmt.Sprintf(format, args...))
}
func (g *grpcLogger) Warning(args ...any)   { g.write(slog.LevelDebug, fmt.Sprint(args...)) }
func (g *grpcLogger) Warningln(args ...any) { g.write(slog.LevelDebug, fmt.Sprintln(args...)) }
func (g *grpcLogger) Warningf(format string, args ...any) {
	g.write(slog.LevelDebug, fmt.Sprintf(format, args...))
}
func (g *grpcLogger) Error(args ...any)   { g.write(slog.LevelWarn, fmt.Sprint(args...)) }
func (g *grpcLogger) Errorln(args ...any) { g.write(slog.LevelWarn, fmt.Sprintln(args...)) }
func (g *grpcLogger) Errorf(format string, args ...any) {
	g.write(slog.LevelWarn, fmt.Sprintf(format, args...))
}
func (g *grpcLogger) Fatal(args ...any)                 { g.fatal(fmt.Sprint(args...)) }
func (g *grpcLogger) Fatalln(args ...any)               { g.fatal(fmt.Sprintln(args...)) }
func (g *grpcLogger) Fatalf(format string, args ...any) { g.fatal(fmt.Sprintf(format, args...)) }

// fatal ends the program, as grpclog requires.
func (g *grpcLogger) fatal(text string) {
	g.log.Error("gRPC: " + strings.TrimSpace(text))
	os.Exit(1)
}

// V implements grpclog.LoggerV2: messages of each call are not written.
func (g *grpcLogger) V(level int) bool { return level <= 0 }
