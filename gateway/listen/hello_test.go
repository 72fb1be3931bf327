package listen

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// gauge records its maximum. Safe for concurrent use.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) Inc() { g.add(1) }
func (g *gauge) Dec() { g.add(-1) }

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

func (g *gauge) read() (now, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now, g.most
}

// pipes is a listener of in-memory connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Connections that send nothing, or the beginning of a first message, are closed soon, and those that send nothing
// hold no handshake.
func TestConnectionsWithoutHelloAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket, reasons := make(pipes), make(chan string, 1000)
		var open, handshaking gauge
		listener := TLS(socket, &tls.Config{}, Options{
			Limits: Limits{Connections: 1000}, Open: &open, Handshaking: &handshaking,
			Refused: func(reason string, _ net.Addr, _ error) { reasons <- reason },
		})
		const silent = 300 // more than the simultaneous handshakes
		var clients []net.Conn
		for range silent {
			client, server := net.Pipe()
			socket <- server
			clients = append(clients, client)
		}
		synctest.Wait()
		if _, most := handshaking.read(); most != 0 {
			t.Errorf("%d handshakes of silent connections", most)
		}
		if now, _ := open.read(); now != silent {
			t.Errorf("%d connections", now)
		}
		client, server := net.Pipe()
		socket <- server
		started := time.Now()
		if _, err := client.Write([]byte{22, 3, 1}); err != nil { // the beginning of a record
			t.Fatal(err)
		}
		synctest.Wait()
		if now, _ := handshaking.read(); now != 1 {
			t.Errorf("%d handshakes", now)
		}
		for range silent + 1 {
			if reason := <-reasons; reason != "timeout" {
				t.Errorf("refused as %s", reason)
			}
		}
		if took := time.Since(started); took != limits.HelloTime {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait()
		remaining, _ := open.read()
		if handshakes, _ := handshaking.read(); remaining != 0 || handshakes != 0 {
			t.Errorf("%d connections, %d handshakes remain", remaining, handshakes)
		}
		for _, one := range append(clients, client) {
			one.Close()
		}
		listener.Close()
		close(socket)
	})
}

// deaf is a connection whose client never reads an answer.
type deaf struct {
	net.Conn
	ended <-chan struct{}
}

func (d deaf) Read([]byte) (int, error) {
	<-d.ended
	return 0, net.ErrClosed
}

// A client whose first message is complete, and which then neither reads nor sends, is closed when its handshake has
// taken too long.
func TestHandshakesThatDoNotEndAreClosed(t *testing.T) {
	fleet := mustertest.NewFleet()
	config := &tls.Config{Certificates: []tls.Certificate{fleet.Service("gateway", "g1")}}
	synctest.Test(t, func(t *testing.T) {
		socket, reasons := make(pipes), make(chan string, 1)
		var handshaking gauge
		listener := TLS(socket, config, Options{
			Limits: Limits{Connections: 10}, Handshaking: &handshaking,
			Refused: func(reason string, _ net.Addr, _ error) { reasons <- reason },
		})
		client, server := net.Pipe()
		socket <- server
		started, ended := time.Now(), make(chan struct{})
		go tls.Client(deaf{client, ended}, &tls.Config{InsecureSkipVerify: true}).Handshake()
		synctest.Wait()
		if now, _ := handshaking.read(); now != 1 {
			t.Errorf("%d handshakes", now)
		}
		if reason := <-reasons; reason != "timeout" {
			t.Errorf("refused as %s", reason)
		}
		if took := time.Since(started); took != limits.HandshakeTime {
			t.Errorf("closed after %v", took)
		}
		close(ended)
		client.Close()
		listener.Close()
		close(socket)
	})
}

// Connections above the limit wait in the queue of the kernel until another one is closed.
func TestConnectionsAboveTheLimitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket := make(pipes)
		listener := TLS(socket, &tls.Config{}, Options{Limits: Limits{Connections: 2}, Refused: func(string, net.Addr, error) {}})
		var clients []net.Conn
		for range 2 {
			client, server := net.Pipe()
			socket <- server
			clients = append(clients, client)
		}
		synctest.Wait()
		third, server := net.Pipe()
		select {
		case socket <- server:
			t.Error("a third connection was accepted")
		default:
		}
		clients[0].Close()
		synctest.Wait()
		select {
		case socket <- server:
		default:
			t.Error("no connection is accepted after another one was closed")
		}
		for _, one := range append(clients, third) {
			one.Close()
		}
		synctest.Wait()
		listener.Close()
		close(socket)
	})
}
