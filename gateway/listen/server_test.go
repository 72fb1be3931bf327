package listen

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"muster.example/gateway/limits"
)

// A connection between two requests is closed after limits.IdleTime.
func TestIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket := make(pipes)
		server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}), nil, slog.New(slog.DiscardHandler))
		go server.Serve(socket)
		client, served := net.Pipe()
		socket <- served
		go io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := client.Read(make([]byte, 4096)); err != nil { // the answer
			t.Fatal(err)
		}
		answered := time.Now()
		if _, err := io.Copy(io.Discard, client); err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if took := time.Since(answered); took != limits.IdleTime {
			t.Errorf("closed after %v", took)
		}
		client.Close()
		close(socket)
		server.Close()
	})
}

// A connection has no more streams at a time than limits.Streams.
func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	server := startHTTP2(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	conn, err := tls.Dial("tcp", server.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for stream := range limits.Streams + 1 {
		head.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*stream + 1), BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true})
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err) // no stream was refused
		}
		if reset, ok := frame.(*http2.RSTStreamFrame); ok {
			if reset.StreamID != uint32(2*limits.Streams+1) || reset.ErrCode != http2.ErrCodeRefusedStream {
				t.Errorf("stream %d is refused: %v", reset.StreamID, reset.ErrCode)
			}
			return
		}
	}
}
