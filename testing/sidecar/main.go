// Sidecar is a legacy client for tests: its wire protocol and habits are those of a Sonobuoy worker of release 0.57, so
// that tests prove that an unmodified old sidecar delivers.
//
//	sidecar global | single-node [--sleep=SECONDS]
//
// It is configured only by environment variables (see loadConfig), waits for the done file, sends the file that it
// names, and forwards a plugin's progress. It does not know Muster, and its faults are intentional: it reads the whole
// file into memory, sends it as one chunk, makes three attempts a second apart, and fails permanently about two seconds
// after the first refusal.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	if err := run(os.Args[1:]); err != nil {
		log.Printf("error: %v", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 || arguments[0] != "global" && arguments[0] != "single-node" {
		return fmt.Errorf("usage: sidecar global | single-node [--sleep=SECONDS]")
	}
	perNode, sleep := arguments[0] == "single-node", 0
	for _, argument := range arguments[1:] {
		if text, found := strings.CutPrefix(argument, "--sleep="); found {
			seconds, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			sleep = seconds
		} // The old level flags are accepted and ignored.
	}
	config, err := loadConfig(perNode)
	if err != nil {
		return err
	}
	go relayProgress(config)

	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	file, err := waitForDone(stop, config)
	if err != nil || file == "" {
		return err // stopped: not an error, and nothing is sent
	}
	if err := deliver(config, file); err != nil {
		return err
	}
	log.Print("delivered")
	if sleep < 0 {
		signal.Ignore(syscall.SIGTERM)
		select {} // prevents a restart; only a kill ends it
	}
	time.Sleep(time.Duration(sleep) * time.Second)
	return nil
}
