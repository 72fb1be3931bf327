package mustertest

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// ReserveAddress returns a loopback address for listeners that start and stop during a test. The socket that
// reserves it is bound but does not listen: clients are refused while no server listens, and no other program
// gets the port.
func ReserveAddress(t testing.TB) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	// With this option on both sides, as package net sets it, a listener may bind to a port that another
	// socket has.
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*unix.SockaddrInet4).Port)
}
