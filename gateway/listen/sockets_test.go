package listen

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// supervisor keeps sockets as the real one does.
type supervisor struct {
	t    *testing.T
	path string
	mu   sync.Mutex
	held map[string]*net.TCPListener
}

func startSupervisor(t *testing.T) *supervisor {
	s := &supervisor{t: t, path: filepath.Join(t.TempDir(), "s.sock"), held: map[string]*net.TCPListener{}}
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn.(*net.UnixConn))
		}
	}()
	return s
}

func (s *supervisor) serve(conn *net.UnixConn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var request supervisorRequest
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			s.t.Error(err)
			return
		}
		s.answer(conn, request)
	}
}

func (s *supervisor) answer(conn *net.UnixConn, r supervisorRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Release != "" {
		if s.held[r.Release] != nil {
			s.held[r.Release].Close()
			delete(s.held, r.Release)
		}
		_, _ = io.WriteString(conn, "{}\n")
		return
	}
	host, port, _ := net.SplitHostPort(r.Listen)
	if held := s.held[r.Name]; held != nil && !(strings.HasPrefix(held.Addr().String(), host+":") &&
		(port == "0" || strings.HasSuffix(held.Addr().String(), ":"+port))) {
		_, _ = io.WriteString(conn, `{"error":"NAME_TAKEN"}`+"\n")
		return
	}
	if s.held[r.Name] == nil {
		listener, err := net.Listen("tcp", r.Listen)
		if err != nil {
			_, _ = io.WriteString(conn, `{"error":"ADDRESS_IN_USE"}`+"\n")
			return
		}
		s.held[r.Name] = listener.(*net.TCPListener)
	}
	file, _ := s.held[r.Name].File()
	defer file.Close()
	line, _ := json.Marshal(supervisorAnswer{Address: s.held[r.Name].Addr().String()})
	if _, _, err := conn.WriteMsgUnix(append(line, '\n'), unix.UnixRights(int(file.Fd())), nil); err != nil {
		s.t.Error(err)
	}
}

func TestAConnectionWaitsWhileTheGatewayIsAway(t *testing.T) {
	sockets := &Sockets{Supervisor: startSupervisor(t).path}
	first, err := sockets.Listen(t.Context(), "legacy/1", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr().String()
	first.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	second, err := sockets.Listen(t.Context(), "legacy/1", "127.0.0.1:0")
	if err != nil || second.Addr().String() != address {
		t.Fatalf("%v %v, was %s", err, second.Addr(), address)
	}
	waiting, err := second.Accept()
	if err != nil || waiting.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Fatalf("%v: another connection", err)
	}
	waiting.Close()
	second.Close()
	if err := sockets.Release(t.Context(), "legacy/1"); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("it is still open")
	}
}

// After a change of the configuration the name has another address.
func TestANameMayMove(t *testing.T) {
	sockets := &Sockets{Supervisor: startSupervisor(t).path}
	for _, address := range []string{"127.0.0.1:0", "127.0.0.2:0"} {
		l, err := sockets.Listen(t.Context(), "gateway", address)
		if err != nil || !strings.HasPrefix(l.Addr().String(), strings.TrimSuffix(address, "0")) {
			t.Fatalf("%s: %v", address, err)
		}
		l.Close()
	}
}

func TestWithoutASupervisorAnswerThereIsAnError(t *testing.T) {
	s := startSupervisor(t)
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	sockets := &Sockets{Supervisor: s.path}
	if _, err := sockets.Listen(t.Context(), "x", used.Addr().String()); err == nil || !strings.Contains(err.Error(), "ADDRESS_IN_USE") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sockets.Listen(ctx, "x", "127.0.0.1:0"); err == nil {
		t.Error("no error")
	}
	sockets.Supervisor += "x"
	if _, err := sockets.Listen(t.Context(), "x", "127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "cannot reach the supervisor") {
		t.Error(err)
	}
}
