package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"muster.example/testing/fleet"
)

// byBare sends the load to a server of plain gRPC that keeps nothing: what the library and TLS alone cost. A fleet
// beside it, which has nothing to do, lends the certificates.
func byBare(folder string, s settings, l load) (one sample, err error) {
	f, credential, err := planned(folder, l.count)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	port, err := freePort()
	if err != nil {
		return one, err
	}
	server, err := startServer(port, program(s, "bare_server"), fmt.Sprintf("--port=%d", port),
		"--tls="+filepath.Join(f.Home, "aggregator", "tls"))
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	sender, err := grpcSender(f, s, credential, l)
	if err != nil {
		return one, err
	}
	sender.Args = append(sender.Args, fmt.Sprintf("--target=localhost:%d", port))
	return measured([]fleet.Process{{PID: server.Process.Pid, Name: "bare_server"}}, sender)
}
