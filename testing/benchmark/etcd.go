package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"muster.example/testing/fleet"
)

// byEtcd starts a fresh etcd of one member, which syncs each batch of writes, and sends the load to it.
func byEtcd(folder string, l load) (one sample, err error) {
	if err := makeCertificates(folder); err != nil {
		return one, err
	}
	port, err := freePort()
	if err != nil {
		return one, err
	}
	peers, err := freePort()
	if err != nil {
		return one, err
	}
	url, peerURL := fmt.Sprintf("https://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", peers)
	file := func(name string) string { return filepath.Join(folder, name) }
	server, err := startServer(port, "etcd", "--data-dir", file("etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL,
		"--cert-file", file("server.pem"), "--key-file", file("server.key"), "--client-cert-auth", "--trusted-ca-file", file("ca.pem"),
		"--quota-backend-bytes", "8589934592")
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	way := sending{protocol: "etcd", url: fmt.Sprintf("127.0.0.1:%d", port), load: l}
	way.useFolder(folder)
	sender, err := way.command()
	if err != nil {
		return one, err
	}
	return measured([]fleet.Process{{PID: server.Process.Pid, Name: "etcd"}}, sender)
}

// startServer starts a peer and returns when it accepts connections.
func startServer(port int, program string, arguments ...string) (*exec.Cmd, error) {
	server := exec.Command(program, arguments...)
	if err := server.Start(); err != nil {
		return nil, err
	}
	err := fleet.Until(20*time.Second, program+" accepts connections", func() bool {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(err, stopServer(server))
	}
	return server, nil
}

// stopServer kills a peer: its data are no longer needed.
func stopServer(server *exec.Cmd) error {
	if err := server.Process.Kill(); err != nil {
		return err
	}
	_ = server.Wait() // it was killed
	return nil
}

// rawCodec sends messages that are encoded already.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}
func (rawCodec) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

// etcd puts bodies under separate keys, over one connection for each sender.
func (s sending) etcd(config *tls.Config, body []byte) (func(int, int64) error, error) {
	var connections []*grpc.ClientConn
	for range s.load.senders {
		connection, err := grpc.NewClient("passthrough:///"+s.url, grpc.WithTransportCredentials(credentials.NewTLS(config)),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
		if err != nil {
			return nil, err
		}
		connections = append(connections, connection)
	}
	return func(sender int, number int64) error {
		// PutRequest: 1 is the key, 2 the value.
		request := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), fmt.Sprintf("results/node-%d", number))
		request = protowire.AppendBytes(protowire.AppendTag(request, 2, protowire.BytesType), body)
		var response []byte
		return connections[sender].Invoke(context.Background(), "/etcdserverpb.KV/Put", &request, &response)
	}, nil
}
