package mustertest

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

func TestAReservedAddressIsForListenersThatAskForIt(t *testing.T) {
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
			t.Errorf("two listen at once: %v", err)
		}
		conn.Close()
		listener.Close()
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens, and a client gets %v", err)
		}
	}
}

// A server that is stopped before it came to accept gives its address free as well.
func TestAnAggregatorStopsAndStartsAtItsAddress(t *testing.T) {
	aggregator := NewAggregator(t, NewFleet())
	address := aggregator.Start()
	for range 100 {
		aggregator.Stop()
		if again := aggregator.Start(); again != address {
			t.Fatalf("at %s, it was %s", again, address)
		}
	}
}
