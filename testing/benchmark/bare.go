package main

import (
	"bufio"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

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
	server := exec.Command(program(s, "bare_server"), "--tls="+filepath.Join(f.Home, "aggregator", "tls"))
	output, err := server.StdoutPipe()
	if err != nil {
		return one, err
	}
	if err := server.Start(); err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	port, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return one, err
	}
	sender, err := grpcSender(f, s, credential, l)
	if err != nil {
		return one, err
	}
	sender.Args = append(sender.Args, "--target="+net.JoinHostPort("localhost", strings.TrimSpace(port)))
	return measured([]fleet.Process{{PID: server.Process.Pid, Name: "bare_server"}}, sender)
}
