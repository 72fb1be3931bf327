package mustertest

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// ReserveAddress returns a loopback address for listeners that start and stop during a test.
func ReserveAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", ReservePort(t, "127.0.0.1", 0))
}

// ReservePort reserves a port of an IPv4 address until the test ends (0: any free one), and returns it. The socket that
// reserves it is bound but does not listen: clients are refused while no server listens, and no other program gets the
// port.
func ReservePort(t testing.TB, host string, port int) int {
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
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: netip.MustParseAddr(host).As4(), Port: port}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return bound.(*unix.SockaddrInet4).Port
}
