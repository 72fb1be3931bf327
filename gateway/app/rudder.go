package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"muster.example/gateway/command"
	"muster.example/gateway/config"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	"muster.example/gateway/rest"
	"muster.example/gateway/rudder"
)

// Version is the version of everything in this repository: services/common/version.h.
const Version = "0.1.0"

const relayHelp = "This port speaks HTTPS only: use https://. See docs/rudder.md."

// relay opens the listener for Rudder's relay API, if one is configured.
func (a *App) relay() error {
	if a.config.Rudder.Listen == "" {
		return nil
	}
	var streams *command.Runner
	if a.config.Rudder.Streams && len(a.config.RelayTargets) > 0 {
		streams = command.NewRunner(a.keys.Identity().Fleet, a.own.aggregator, a.own.relay, a.log.With("listener", "rudder"))
	}
	var err error
	a.rudder, err = rudder.New(rudder.Options{
		Config: &a.config.Rudder, Version: Version, Requests: a.metrics.Requests, Streams: streams, Log: a.log.With("listener", "rudder"),
		Configuration: func() error {
			if a.config.Path == "" {
				return nil
			}
			_, err := config.Load(a.config.Path)
			return err
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	socket, err := a.sockets.Listen(ctx, "rudder", a.config.Rudder.Listen)
	if err != nil {
		return fmt.Errorf("rudder.listen: %w", err)
	}
	a.Addresses.Rudder = socket.Addr().String()
	settings := a.rudder.TLS()
	a.relaying = listen.NewServer(rest.RefuseCrossSite(a.rudder), settings, a.log)
	a.relaying.MaxHeaderBytes = int(limits.RudderHeader)
	a.relaying.Protocols = new(http.Protocols)
	a.relaying.Protocols.SetHTTP1(true)
	go a.run(a.relaying, listen.TLS(socket, settings, a.options("rudder", relayHelp)))
	return nil
}

// stopRelay waits for requests as long as the context lasts, then ends them.
func (a *App) stopRelay(ctx context.Context) {
	if a.relaying != nil && a.relaying.Shutdown(ctx) != nil {
		a.relaying.Close()
	}
	if a.rudder != nil {
		// Remaining process groups are asked to end and get a moment for that.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		a.rudder.Close(ending)
	}
}

// Reload reads the files about Rudder's nodes again. If one is invalid, the old state is kept.
func (a *App) Reload() error {
	if a.rudder == nil {
		return errors.New("rudder.listen has no value: there is nothing to reload")
	}
	return a.rudder.Reload()
}
