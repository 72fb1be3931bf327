package mustertest

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestReservedAddressAcceptsOneListener(t *testing.T) {
	address := ReserveAddress(t)
	for range 3 {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("two servers listen at the same time: %v", err)
		}
		conn.Close()
		listener.Close()
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("no server listens, and a client gets %v", err)
		}
	}
}

// A server that is stopped before its first Accept releases its address, too.
func TestAggregatorRestartsAtItsAddress(t *testing.T) {
	aggregator := NewAggregator(t, NewFleet())
	address := aggregator.Start()
	for range 100 {
		aggregator.Stop()
		if again := aggregator.Start(); again != address {
			t.Fatalf("restarted at %s instead of %s", again, address)
		}
	}
}
