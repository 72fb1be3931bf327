// Sidecar is an old client for the tests: on the wire and in its habits it is what a Sonobuoy worker of
// release 0.57 is, so that a test can say "an old sidecar, unchanged, still delivers".
//
//	sidecar global | single-node [--sleep=SECONDS]
//
// It is configured by environment variables alone (see loadConfig), waits for the done file, sends the one
// file that it names, and passes a plugin's progress on. It knows nothing of Muster, and its faults are
// kept on purpose: it reads the whole file into memory, sends it as one chunk, tries three times a second
// apart, and gives up for ever about two seconds after the first refusal.
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
		} // The level flags of old are accepted and mean nothing here.
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
		return err // told to stop: no error, and nothing is sent
	}
	if err := deliver(config, file); err != nil {
		return err
	}
	log.Print("delivered")
	if sleep < 0 {
		signal.Ignore(syscall.SIGTERM)
		select {} // so that nobody starts it again; only a kill ends it
	}
	time.Sleep(time.Duration(sleep) * time.Second)
	return nil
}
