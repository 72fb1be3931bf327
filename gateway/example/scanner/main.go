// Scanner is an example of a web product's back end: it starts a run for a user, and shows the progress of that run. Its
// credentials for the run are stored only in the user's session: never on a disk, and deleted with the session.
//
//	scanner --context context.json --listen 127.0.0.1:8080
//
//	POST   /scans          {"plugins": ["hostfacts"], "nodes": ["n1"]}: starts a run, answers with a session's cookie
//	GET    /scans/status   the run's status, as JSON
//	GET    /scans/events   the same as server-sent events, for a live page
//	DELETE /scans          ends the session; the run continues
//
// It uses only the standard library and Muster's REST API.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	file := flag.String("context", "", "the operator's context file of muster operator add")
	listen := flag.String("listen", "127.0.0.1:8080", "the address to serve; a product adds its own TLS")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *file, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "scanner:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, file, listen string) error {
	fleet, err := openFleet(file)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("serving on http://" + listener.Addr().String())
	server := &http.Server{Handler: newHandler(fleet, newSessions()), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
