package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// http2Server is a server whose clients may have a certificate.
type http2Server struct {
	t       *testing.T
	fleet   *mustertest.Fleet
	address string
	closed  chan string // the reason and the source of each closed connection
	refused chan error  // of refused handshakes
}

func startHTTP2(t *testing.T, handler http.HandlerFunc) *http2Server {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http2Server{t: t, fleet: mustertest.NewFleet(), address: socket.Addr().String(),
		closed: make(chan string, 100), refused: make(chan error, 100)}
	config := &tls.Config{
		Certificates: []tls.Certificate{s.fleet.Service("gateway", "g1")}, ClientAuth: tls.VerifyClientCertIfGiven,
		ClientCAs: s.fleet.Root.Pool(), NextProtos: []string{"h2", "http/1.1"},
	}
	server := NewServer(handler, config, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { server.Close() })
	go func() {
		_ = server.Serve(TLS(socket, config, Options{
			Limits: Limits{Connections: 1000}, Flooded: Answer{Code: http.StatusTooManyRequests, Body: "FLOODED\n"},
			Closed: func(reason, source string, _ net.Addr) { s.closed <- reason + " " + source },
			Refused: func(reason string, _ net.Addr, err error) {
				if reason == "flood" {
					s.refused <- err
				}
			},
		}))
	}()
	return s
}

// node returns the certificate of a node; "": none.
func (s *http2Server) node(name string) []tls.Certificate {
	if name == "" {
		return nil
	}
	return []tls.Certificate{s.fleet.Intermediate.Leaf(nodeURI + name)}
}

// client returns a client of HTTP/2 with the certificate of a node, or none.
func (s *http2Server) client(node string) *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: s.node(node)}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get reports the failure of a request over a new connection.
func (s *http2Server) get(node string) error {
	response, err := s.client(node).Get("https://" + s.address + "/")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 || response.TLS == nil {
		s.t.Errorf("%v", response)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// flood opens a connection, and writes frames until the server closes it.
func (s *http2Server) flood(node string, flood frameFlood) {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: s.node(node)})
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	gone := make(chan struct{})
	go func() { // reads the answers
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, nil)
	f.AllowIllegalWrites = true
	var head strings.Builder
	block := hpack.NewEncoder(&head)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/wait"}} {
		_ = block.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true})
	}
	_ = f.WriteSettings()
	for i := 0; err == nil; i++ {
		if flood.reason == "resets" {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: []byte(head.String()), EndHeaders: true, EndStream: true})
		} else if i == 0 {
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(head.String()), EndHeaders: flood.reason != "long_headers"})
		}
		err = flood.write(f, i)
	}
	<-gone
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		s.t.Errorf("%s: the connection is not closed", flood.name)
	}
}

// answer is a handler whose requests for /wait end with their connection or their reset.
func answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/wait" {
		<-r.Context().Done()
	}
	_, _ = io.WriteString(w, r.Proto)
}

func TestFloodOfFramesEndsConnectionAndRefusesItsSource(t *testing.T) {
	for _, flood := range floods() {
		s := startHTTP2(t, answer)
		s.flood("evil", flood)
		select {
		case got := <-s.closed:
			if got != flood.reason+" "+nodeURI+"evil" {
				t.Errorf("closed: %q", got)
			}
		default:
			t.Logf("%s: net/http itself ended the connection", flood.name)
			if !flood.invalid {
				t.Errorf("%s: the end of the connection is not counted", flood.name)
			}
			continue
		}
		if err := s.get("evil"); err == nil || !strings.Contains(err.Error(), "ENHANCE_YOUR_CALM") {
			t.Errorf("%s: a new connection: %v", flood.name, err)
		}
		if err := <-s.refused; !strings.Contains(err.Error(), nodeURI+"evil") {
			t.Error(err)
		}
		for _, other := range []string{"", "n1"} {
			if err := s.get(other); err != nil {
				t.Errorf("%s: another source %q at the same address: %v", flood.name, other, err)
			}
		}
	}
}

func TestFloodWithoutCertificateRefusesOnlyClientsWithoutCertificate(t *testing.T) {
	s := startHTTP2(t, answer)
	s.flood("", frameFlood{"pings", "pings", limits.FramePings, false, func(f *http2.Framer, _ int) error { return f.WritePing(false, [8]byte{}) }})
	if got := <-s.closed; got != "pings 127.0.0.1/32" {
		t.Errorf("closed: %q", got)
	}
	if err := s.get(""); err == nil {
		t.Error("a new connection without a certificate is accepted")
	}
	if err := s.get("n1"); err != nil {
		t.Errorf("a node at the same address: %v", err)
	}
}

// Clients of Go cancel with a reset and a ping.
func TestHonestClientsOfHTTP2AreServed(t *testing.T) {
	begun := make(chan struct{})
	s := startHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wait":
			begun <- struct{}{}
			<-r.Context().Done()
		case "/long":
			_, _ = w.Write(make([]byte, 64<<20))
		default:
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})
	client := s.client("n1")
	for range limits.Streams { // as many as one connection has at a time
		ctx, cancel := context.WithCancel(t.Context())
		request, _ := http.NewRequestWithContext(ctx, "GET", "https://"+s.address+"/wait", nil)
		var ended sync.WaitGroup
		ended.Go(func() {
			if _, err := client.Do(request); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		<-begun
		cancel()
		ended.Wait()
	}
	response, err := client.Get("https://" + s.address + "/long")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for piece := make([]byte, 4<<10); err == nil; { // a reader that sends many window updates
		_, err = io.ReadFull(response.Body, piece)
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	sent, writer := io.Pipe()
	go func() {
		for range limits.FrameSmallData / 4 {
			_, _ = io.WriteString(writer, `{"a":1}`)
		}
		writer.Close()
	}()
	if response, err := client.Post("https://"+s.address+"/", "application/json", sent); err != nil || response.StatusCode != 200 {
		t.Errorf("a body of small pieces: %v %v", response, err)
	}
	select {
	case got := <-s.closed:
		t.Errorf("closed: %s", got)
	default:
	}
}

func TestSourceIsAcceptedAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFloods()
		first, err := f.join("a", "the name")
		if err != nil {
			t.Fatal(err)
		}
		f.refuse(first)
		time.Sleep(limits.FloodPause / 2)
		f.refuse(first) // of another connection
		f.leave(first)
		time.Sleep(limits.FloodPause - time.Nanosecond)
		if _, err := f.join("a", "the name"); err == nil || !strings.Contains(err.Error(), "the name") {
			t.Errorf("within the pause: %v", err)
		}
		other, err := f.join("b", "")
		if err != nil {
			t.Errorf("another source: %v", err)
		}
		f.leave(other)
		time.Sleep(2 * time.Nanosecond)
		again, err := f.join("a", "the name")
		if err != nil {
			t.Fatal(err)
		}
		f.leave(again)
		if len(f.sources) != 0 {
			t.Errorf("%d sources remain", len(f.sources))
		}
	})
}

func TestSourceOfConnection(t *testing.T) {
	fleet, stranger := mustertest.NewFleet(), mustertest.NewFleet()
	one := fleet.Intermediate.Leaf(nodeURI + "n1")
	renewed := fleet.Intermediate.Leaf(nodeURI + "n1")
	forged := stranger.Intermediate.Leaf(nodeURI + "n1")
	here, there := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 1}
	of := func(leaf *tls.Certificate, authority *mustertest.Fleet, remote net.Addr, shared bool) string {
		state := &tls.ConnectionState{}
		if leaf != nil {
			state.PeerCertificates = append(state.PeerCertificates, leaf.Leaf)
		}
		if authority != nil {
			state.VerifiedChains = append(state.VerifiedChains, append(state.PeerCertificates, authority.Root.Certificate))
		}
		key, _ := sourceOf(state, remote, shared)
		return key
	}
	identity := of(&one, fleet, here, false)
	if of(&renewed, fleet, there, false) != identity {
		t.Error("a renewal, or another address, makes another source of an identity")
	}
	if of(&forged, nil, here, false) != of(nil, nil, here, false) || of(nil, nil, here, false) == of(nil, nil, there, false) {
		t.Error("the source of a client without a verified certificate is not its address")
	}
	keys := map[string]bool{identity: true, of(nil, nil, here, false): true}
	for _, leaf := range []*tls.Certificate{&one, &renewed} {
		for _, remote := range []net.Addr{here, there} {
			keys[of(leaf, fleet, remote, true)] = true
		}
	}
	if len(keys) != 6 {
		t.Errorf("a credential of many machines has too few sources: %v", keys)
	}
}
