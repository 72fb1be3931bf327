package mustertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster.example/services/client/go/reasons"
)

type supervisorRequest struct {
	Listen  string `json:"listen"`
	Name    string `json:"name"`
	Release string `json:"release"`
}

// supervisor holds sockets as the real one does.
type supervisor struct {
	t    testing.TB
	path string
	mu   sync.Mutex
	held map[string]*net.TCPListener
}

// StartSupervisor holds listening sockets over restarts of a gateway, by the protocol of listen.Sockets, as
// `muster up` does: without it another program could get a port in between. It returns the path of its
// socket.
func StartSupervisor(t testing.TB) string {
	t.Helper()
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
	t.Cleanup(s.releaseAll)
	return s.path
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
		refuse(conn, reasons.NameTaken)
		return
	}
	if s.held[r.Name] == nil {
		listener, err := net.Listen("tcp", r.Listen)
		if err != nil {
			reason := reasons.IoError
			if errors.Is(err, syscall.EADDRINUSE) {
				reason = reasons.AddressInUse
			}
			refuse(conn, reason)
			return
		}
		s.held[r.Name] = listener.(*net.TCPListener)
	}
	file, _ := s.held[r.Name].File()
	defer file.Close()
	line, _ := json.Marshal(map[string]string{"address": s.held[r.Name].Addr().String()})
	if _, _, err := conn.WriteMsgUnix(append(line, '\n'), unix.UnixRights(int(file.Fd())), nil); err != nil {
		s.t.Error(err)
	}
}

func refuse(conn *net.UnixConn, reason string) {
	line, _ := json.Marshal(map[string]string{"error": "refused with " + reason, "reason": reason})
	_, _ = conn.Write(append(line, '\n'))
}

func (s *supervisor) releaseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, socket := range s.held {
		socket.Close()
	}
}
