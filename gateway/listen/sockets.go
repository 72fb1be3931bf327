package listen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isTransient tells of a failure to accept that passes by itself.
func isTransient(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// Sockets opens listening sockets: by itself, or from a supervisor that keeps them open while the
// gateway restarts, so that a client's connection waits instead of being refused. Safe for concurrent
// use.
//
// The supervisor's protocol, over a Unix stream socket, one request for each connection: a line
//
//	{"listen":"host:port","name":"legacy/<run>"}
//
// is answered by a line {"address":"host:port"} with the listening socket attached (SCM_RIGHTS), or
// {"error":"..."}. The same name again gives the same socket. {"release":"legacy/<run>"} closes it and
// is answered by a line {} or {"error":"..."}.
type Sockets struct {
	// Supervisor is the path of its socket; empty: there is none.
	Supervisor string
}

const supervisorTimeout = 5 * time.Second

type supervisorRequest struct {
	Listen  string `json:"listen,omitempty"`
	Name    string `json:"name,omitempty"`
	Release string `json:"release,omitempty"`
}

type supervisorAnswer struct {
	Address string `json:"address"`
	Error   string `json:"error"`
}

// Listen opens a socket at an address; port 0 is any free one.
func (s *Sockets) Listen(ctx context.Context, name, address string) (net.Listener, error) {
	if s.Supervisor == "" {
		var config net.ListenConfig
		return config.Listen(ctx, "tcp", address)
	}
	file, err := s.ask(ctx, supervisorRequest{Listen: address, Name: name})
	if errors.Is(err, errRefused) { // the name may have had another address in an earlier life
		if _, err := s.ask(ctx, supervisorRequest{Release: name}); err != nil {
			return nil, err
		}
		file, err = s.ask(ctx, supervisorRequest{Listen: address, Name: name})
	}
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, fmt.Errorf("the supervisor sent no socket for %s", name)
	}
	defer file.Close()
	return net.FileListener(file)
}

// ListenPort opens a socket at a host: at `port`, or if that is 0 at the first free one from `first` to `last`
// (0 to 0 is any). The error is that of the last port it tried.
func (s *Sockets) ListenPort(ctx context.Context, name, host string, port, first, last int) (net.Listener, error) {
	if port != 0 {
		first, last = port, port
	}
	failure := fmt.Errorf("no port from %d to %d", first, last)
	for try := first; try <= last; try++ {
		socket, err := s.Listen(ctx, name, net.JoinHostPort(host, strconv.Itoa(try)))
		if err == nil || ctx.Err() != nil {
			return socket, err
		}
		failure = err
	}
	return nil, failure
}

const firstRetry, longestRetry = 200 * time.Millisecond, 5 * time.Second

// RetryDelay is how long to wait before a listener that could not be opened is tried again, after so many
// failures before (0: none): twice as long at most each time, with full jitter.
func RetryDelay(failures int) time.Duration {
	return rand.N(min(firstRetry<<min(failures, 6), longestRetry))
}

// Release tells the supervisor that a name is not needed any more.
func (s *Sockets) Release(ctx context.Context, name string) error {
	if s.Supervisor == "" {
		return nil
	}
	_, err := s.ask(ctx, supervisorRequest{Release: name})
	return err
}

var errRefused = errors.New("the supervisor refused")

// ask gives the descriptor that came with the answer, nil if there was none.
func (s *Sockets) ask(ctx context.Context, request supervisorRequest) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, supervisorTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", s.Supervisor)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the supervisor: %w", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("cannot ask the supervisor: %w", err)
	}
	text, file, err := readAnswer(conn.(*net.UnixConn))
	if err != nil {
		return nil, fmt.Errorf("no answer from the supervisor: %w", err)
	}
	var answer supervisorAnswer
	if err = json.Unmarshal(text, &answer); err != nil {
		err = fmt.Errorf("the supervisor answered %q: %w", text, err)
	} else if answer.Error != "" {
		err = fmt.Errorf("%w: %s", errRefused, answer.Error)
	}
	if err != nil && file != nil {
		file.Close()
		file = nil
	}
	return file, err
}

// readAnswer reads one line and the first descriptor that came with it.
func readAnswer(conn *net.UnixConn) ([]byte, *os.File, error) {
	var text, data, control = []byte(nil), make([]byte, 4096), make([]byte, unix.CmsgSpace(4*4))
	var file *os.File
	for !bytes.ContainsRune(text, '\n') && len(text) < 64<<10 {
		n, controls, _, _, err := conn.ReadMsgUnix(data, control)
		text = append(text, data[:n]...)
		for _, descriptor := range descriptors(control[:controls]) {
			if file == nil {
				file = os.NewFile(uintptr(descriptor), "listener")
			} else {
				_ = unix.Close(descriptor)
			}
		}
		if err != nil || n == 0 {
			if file != nil {
				file.Close()
			}
			return nil, nil, errors.Join(err, fmt.Errorf("after %q", text))
		}
	}
	line, err := bufio.NewReader(bytes.NewReader(text)).ReadBytes('\n')
	return line, file, err
}

// descriptors gives all that came with a message; each is the caller's to close.
func descriptors(control []byte) (all []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		rights, err := unix.ParseUnixRights(&messages[i])
		if err == nil {
			for _, descriptor := range rights {
				unix.CloseOnExec(descriptor)
				all = append(all, descriptor)
			}
		}
	}
	return all
}
