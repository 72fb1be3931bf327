package fleet

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// linked returns both ends of a connection over a link, and the link.
func linked(t *testing.T) (l *Link, client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	l, err = NewLink(nil, "127.0.0.1:0", listener.Addr().String())
	fatal(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, dialed(t, l), accepted(t, listener)
}

func dialed(t *testing.T, l *Link) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", l.Address)
	fatal(t, err)
	return bounded(t, client)
}

func accepted(t *testing.T, listener net.Listener) net.Conn {
	t.Helper()
	server, err := listener.Accept()
	fatal(t, err)
	return bounded(t, server)
}

func bounded(t *testing.T, connection net.Conn) net.Conn {
	t.Helper()
	t.Cleanup(func() { _ = connection.Close() })
	fatal(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	return connection
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noise(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.Read(content)
	return content
}

// wantNothing fails if bytes or the end of the connection arrive.
func wantNothing(t *testing.T, connection net.Conn) {
	t.Helper()
	fatal(t, connection.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if n, err := connection.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes arrived, %v", n, err)
	}
	fatal(t, connection.SetReadDeadline(time.Now().Add(time.Minute)))
}

func wantNext(t *testing.T, connection net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(connection, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the bytes differ, %v", err)
	}
}

func wantReset(t *testing.T, connection net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, connection); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
}

func TestLinkPassesBothDirectionsAndEndsCleanly(t *testing.T) {
	l, client, server := linked(t)
	up, down := noise(3<<20), noise(3<<20)
	go func() { _, _ = client.Write(up); _ = client.(*net.TCPConn).CloseWrite() }()
	go func() { _, _ = server.Write(down); _ = server.(*net.TCPConn).CloseWrite() }()
	for connection, want := range map[net.Conn][]byte{server: up, client: down} {
		if got, err := io.ReadAll(connection); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	}
	if l.Passed(Up) != int64(len(up)) || l.Passed(Down) != int64(len(down)) {
		t.Errorf("%d bytes upstream and %d downstream are counted", l.Passed(Up), l.Passed(Down))
	}
}

func TestSlowLinkDelaysBytes(t *testing.T) {
	l, client, server := linked(t)
	const delay, rate = 30 * time.Millisecond, 1 << 20
	l.Slow(delay, rate)
	content := noise(128 << 10)
	began := time.Now()
	go func() { _, _ = client.Write(content) }()
	wantNext(t, server, content)
	// All except the last piece and what passes immediately, and the delay of the first.
	if least := delay + (128<<10-linkPiece)*time.Second/rate - paceCredit - paceAhead; time.Since(began) < least {
		t.Errorf("everything arrived within %v, less than %v", time.Since(began), least)
	}
}

func TestSilentLinkHoldsBytesUntilHealed(t *testing.T) {
	l, client, server := linked(t)
	l.Silence(Up)
	_, err := client.Write([]byte("held"))
	fatal(t, err)
	_, err = server.Write([]byte("down"))
	fatal(t, err)
	wantNext(t, client, []byte("down"))
	fatal(t, client.(*net.TCPConn).CloseWrite())
	wantNothing(t, server)
	l.Silence(Down)
	_, err = server.Write([]byte("held too"))
	fatal(t, err)
	wantNothing(t, client)
	wantNothing(t, dialed(t, l))
	l.Heal()
	for connection, want := range map[net.Conn]string{server: "held", client: "held too"} {
		wantNext(t, connection, []byte(want))
	}
	if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes, %v; want the end that was held", n, err)
	}
}

func TestSilentLinkBuffersLittle(t *testing.T) {
	l, client, _ := linked(t)
	l.Silence(Up)
	fatal(t, client.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	if n, err := client.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n > 16<<20 {
		t.Errorf("the link accepted %d bytes, %v", n, err)
	}
}

func TestSenderToClosedEndGetsError(t *testing.T) {
	_, client, server := linked(t)
	fatal(t, server.Close())
	if _, err := client.Write(noise(64 << 20)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the sender got no error: %v", err)
	}
}

func TestCutLinkResetsConnectionsAndAcceptsMore(t *testing.T) {
	l, client, server := linked(t)
	l.Cut()
	wantReset(t, client)
	wantReset(t, server)
	l.Refuse()
	if refused, err := net.Dial("tcp", l.Address); err == nil {
		wantReset(t, bounded(t, refused))
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	l.Heal()
	wantNothing(t, dialed(t, l))
}

func TestCutAfterCutsInTheMiddle(t *testing.T) {
	l, client, server := linked(t)
	cut := l.CutAfter(1 << 20)
	go func() { _, _ = client.Write(noise(4 << 20)) }()
	n, err := io.Copy(io.Discard, server)
	if n > 1<<20+linkPiece || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes arrived, then %v", n, err)
	}
	<-cut
}

func TestFaultsHappenToOneConnectionEachAtTheirByte(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	l, err := NewLink(nil, "127.0.0.1:0", listener.Addr().String())
	fatal(t, err)
	t.Cleanup(func() { _ = l.Close() })
	l.FaultNext(Fault{Reset, Up, 17}, Fault{Flip, Down, 17 + linkPiece}, Fault{Strand, Up, 3})
	content := noise(2 * linkPiece)

	client, server := dialed(t, l), accepted(t, listener)
	_, err = client.Write(content)
	fatal(t, err)
	wantNext(t, server, content[:17])
	wantReset(t, server)
	wantReset(t, client)

	client, server = dialed(t, l), accepted(t, listener)
	_, err = server.Write(content)
	fatal(t, err)
	changed := bytes.Clone(content)
	changed[17+linkPiece] ^= 1
	wantNext(t, client, changed)

	client, server = dialed(t, l), accepted(t, listener)
	_, err = client.Write(content)
	fatal(t, err)
	fatal(t, client.(*net.TCPConn).CloseWrite())
	wantNext(t, server, content[:3])
	wantNothing(t, server)
	_, err = server.Write(content)
	fatal(t, err)
	wantNext(t, client, content)

	client, server = dialed(t, l), accepted(t, listener)
	_, err = client.Write(content)
	fatal(t, err)
	wantNext(t, server, content)
	if l.Struck() != 3 {
		t.Errorf("%d faults have happened, want 3", l.Struck())
	}
}
