// Example is a complete plugin in Go: it counts the files of a folder, reports its progress, and delivers the count.
//
//	muster credentials export RUN --plugin count --node n1 --format json >node.json
//	example --config node.json /etc
//
// In another module:
//
//	go mod edit -require muster.example@v0.0.0 -replace muster.example=PATH-OF-MUSTER
//	go mod tidy && go mod vendor
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	muster "muster.example/services/client/go"
)

func main() {
	path := flag.String("config", "", "the output of muster credentials export; without it, the environment has the configuration")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *path, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path, folder string) error {
	config, err := muster.LoadConfig(path)
	if err != nil {
		return err
	}
	client, err := muster.New(config)
	if err != nil {
		return err
	}
	defer client.Close()
	client.StartHeartbeats(nil) // failures of heartbeats are ignored, too
	// Progress is optional: a failed report does not stop the work.
	if err := client.ReportProgress(ctx, muster.Key{}, muster.Progress{Message: "counting", Total: 1}); err != nil {
		fmt.Fprintln(os.Stderr, "example: progress:", err)
	}
	found, err := count(folder)
	if err != nil { // an error result, so that the fleet has the reason
		_, submitErr := client.SubmitError(ctx, muster.Key{}, err.Error())
		return errors.Join(err, submitErr)
	}
	result, err := client.Submit(ctx, &muster.Delivery{
		Body: strings.NewReader(found), FileName: "count.json", MediaType: "application/json",
	})
	if err != nil {
		return err
	}
	fmt.Printf("committed %d bytes\n", result.Size)
	return nil
}

func count(folder string) (string, error) {
	files := 0
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files++
		}
		return err
	})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"folder": folder, "files": files})
	return string(text), err
}
