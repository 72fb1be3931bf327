// Muster-gateway serves the REST form of Muster's API and, on a separate listener for each run, the paths of legacy
// clients.
package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"google.golang.org/grpc/grpclog"

	"muster.example/gateway/app"
	"muster.example/gateway/config"
	"muster.example/gateway/limits"
	"muster.example/gateway/logs"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // could not start, or failed later
	exitUsage  = 2
)

// tuneMemory respects the variables GOGC and GOMEMLIMIT. The live heap is a few MiB, so Go's default of GOGC would collect
// every few hundred requests.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(limits.HeapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limits.Heap)
	}
}

func run(args []string, out, errs io.Writer) int {
	tuneMemory()
	flags := flag.NewFlagSet("muster-gateway", flag.ContinueOnError)
	flags.SetOutput(errs)
	path := flags.String("config", "", "the configuration `file`")
	bounds := flags.Bool("print-limits", false, "print the limits of the gateway as a table, and exit")
	print := flags.Bool("print-config", false, "print all fields with their meaning and values, and exit")
	shown := flags.Bool("version", false, "print the version, and exit")
	flags.Usage = func() {
		fmt.Fprintln(errs, "Usage: muster-gateway --config gateway.yaml\n       muster-gateway --print-config >gateway.yaml\n       muster-gateway --print-limits\n       muster-gateway --version")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || (*path == "" && !*print && !*shown && !*bounds) {
		if err == nil {
			flags.Usage()
		}
		return exitUsage
	}
	if *bounds {
		limits.Print(out)
		return exitOK
	}
	if *shown {
		fmt.Fprintln(out, app.Version)
		return exitOK
	}
	settings := config.Default()
	if *path != "" {
		var err error
		if settings, err = config.Load(*path); err != nil {
			fmt.Fprintln(errs, "muster-gateway:", err)
			return exitUsage
		}
	}
	if *print {
		fmt.Fprint(out, settings.Print())
		return exitOK
	}
	return serve(settings, errs)
}

func serve(settings *config.Config, errs io.Writer) int {
	if settings.LogFile != "" {
		file, err := logs.OpenFile(settings.LogFile)
		if err != nil {
			fmt.Fprintln(errs, "muster-gateway:", err)
			return exitFailed
		}
		defer file.Close()
		errs = file
	}
	log := logs.New(errs, settings.LogFormat, settings.LogLevel)
	grpclog.SetLoggerV2(logs.NewGRPC(log))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // the default of SIGHUP ends the process
	gateway, err := app.Start(settings, log)
	if err != nil {
		log.Error("cannot start", "error", err)
		return exitFailed
	}
	log.Info("gateway started", "version", app.Version, "gateway", gateway.Addresses.Gateway, "status", gateway.Addresses.Status,
		"inspection", gateway.Addresses.Inspection)
	code := await(gateway, signals, log)
	gateway.Stop()
	log.Info("gateway stopped")
	return code
}

// await waits until the gateway has to stop, and returns the exit code. SIGHUP reloads the files about Rudder's nodes;
// certificates are reloaded without it.
func await(gateway *app.App, signals <-chan os.Signal, log *slog.Logger) int {
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGHUP {
				log.Info("stopping", "signal", s.String())
				return exitOK
			}
			if err := gateway.Reload(); err != nil {
				log.Error("not reloaded: the old state is kept", "error", err)
			}
		case err := <-gateway.Failed():
			log.Error("a listener failed", "error", err)
			return exitFailed
		}
	}
}
