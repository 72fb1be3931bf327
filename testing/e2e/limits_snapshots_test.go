package e2e

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"muster.example/testing/fleet"
)

// createLarge creates a run whose snapshot has some MiB.
func (w *limited) createLarge() string {
	return strings.TrimSpace(must(w.fleet.Muster("run", "--plugin", "hostfacts", "--nodes-file", w.fileOfNodes(30_000)))(w.t))
}

// fileOfNodes makes a file with many names of nodes.
func (w *limited) fileOfNodes(count int) string {
	var nodes strings.Builder
	for i := range count {
		fmt.Fprintf(&nodes, "large%d\n", i)
	}
	return must(w.fleet.WriteFile(fmt.Sprintf("nodes-%d.txt", count), nodes.String()))(w.t)
}

// leaveUnread asks for the status of a large run again and again on one connection, and reads none of the answers, until one is
// refused. Each request gets another snapshot.
func (w *limited) leaveUnread() string {
	viewer := must(fleet.ReadViewer(w.fleet.CredentialsFile(w.large())))(w.t)
	client := must(viewer.HTTP())(w.t)
	ask := func() error {
		response, err := client.Get(strings.TrimSuffix(viewer.Address, "/") + "/status")
		if err != nil {
			return err
		}
		return refusalOfResponse(response)
	}
	until(w.t, "the large run is shown", func() bool { return ask() == nil })

	listener := must(url.Parse(viewer.Address))(w.t)
	config := client.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	conn := must(tls.Dial("tcp", listener.Host, config))(w.t)
	defer conn.Close()
	_, err := conn.Write([]byte(http2.ClientPreface))
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	check(w.t, errors.Join(err, framer.WriteSettings(), conn.SetDeadline(time.Now().Add(withinAMinute))))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for id := uint32(1); id < 2*64; id += 2 {
		block.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/status"}, {":authority", listener.Host}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		check(w.t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}))
		if code := must(headOfStream(framer, id))(w.t).PseudoValue("status"); code != "200" {
			w.t.Logf("the request %d was refused: %s", id/2+1, code)
			return refusalOf(ask())
		}
	}
	return ""
}

// headOfStream reads frames until the head of a response.
func headOfStream(framer *http2.Framer, id uint32) (*http2.MetaHeadersFrame, error) {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = framer.WritePing(true, frame.Data)
			}
		case *http2.GoAwayFrame:
			err = fmt.Errorf("the connection is closed: %v", frame.ErrCode)
		case *http2.MetaHeadersFrame:
			if frame.StreamID == id {
				return frame, nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
}
