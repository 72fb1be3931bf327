package listen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.example/services/client/go/reasons"
)

// isTransient reports whether a failure to accept is temporary.
func isTransient(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// Sockets opens listening sockets, directly or through a supervisor that keeps them open while the gateway restarts, so
// that a client's connection waits and is not refused. Safe for concurrent use.
//
// The supervisor's protocol, over a Unix stream socket, has one request for each connection: a line
//
//	{"listen":"host:port","name":"legacy/<run>"}
//
// is answered by a line {"address":"host:port"} with the listening socket attached (SCM_RIGHTS), or
// {"error":"...","reason":"..."}. The same name again returns the same socket. {"release":"legacy/<run>"} closes it and
// is answered by a line {} or {"error":"...","reason":"..."}.
type Sockets struct {
	// Supervisor is the path of its socket; empty: no supervisor.
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
	Reason  string `json:"reason"`
}

// supervisorRefusal is an error answer of the supervisor. It is syscall.EADDRINUSE if the address is in use.
type supervisorRefusal struct{ text, reason string }

func (r *supervisorRefusal) Error() string { return "the supervisor refused the request: " + r.text }

func (r *supervisorRefusal) Is(target error) bool {
	return target == syscall.EADDRINUSE && r.reason == reasons.AddressInUse
}

// Listen opens a socket at an address; port 0 selects any free port.
func (s *Sockets) Listen(ctx context.Context, name, address string) (net.Listener, error) {
	if s.Supervisor == "" {
		var config net.ListenConfig
		return config.Listen(ctx, "tcp", address)
	}
	file, err := s.ask(ctx, supervisorRequest{Listen: address, Name: name})
	var refusal *supervisorRefusal
	if errors.As(err, &refusal) && refusal.reason == reasons.NameTaken { // an earlier process used the name with another address
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

// Linux assigns ports from 32768 on to programs that ask for any port, and to outgoing connections. A listener that keeps
// its port over restarts uses one below: the kernel cannot give it to another program while the gateway does not listen.
const (
	firstKeptPort = 20000
	keptPorts     = 12000
	keptPortTries = 100
)

// ListenPort opens a socket at a host: at `port`, or if that is 0 at the first free one from `first` to `last`, or if
// these are 0 too at any free port outside the range from which the kernel assigns ports. It chooses no port of `taken`.
// The error is ErrNoPort if all are in use; any other failure ends the search.
func (s *Sockets) ListenPort(ctx context.Context, name, host string, port, first, last int, taken ...int32) (net.Listener, error) {
	if port != 0 {
		first, last = port, port
	}
	var failure error
	for try := range candidatePorts(first, last) {
		if port == 0 && slices.Contains(taken, int32(try)) {
			continue
		}
		socket, err := s.Listen(ctx, name, net.JoinHostPort(host, strconv.Itoa(try)))
		if err == nil || port != 0 || ctx.Err() != nil || !errors.Is(err, syscall.EADDRINUSE) {
			return socket, err
		}
		failure = err
	}
	none := ErrNoPort
	if first != 0 {
		none = fmt.Errorf("%w from %d to %d", ErrNoPort, first, last)
	}
	if failure == nil {
		return nil, none
	}
	return nil, fmt.Errorf("%w: %w", none, failure)
}

// ErrNoPort means that every port of a range is in use.
var ErrNoPort = errors.New("no free port")

// candidatePorts returns the ports to try, in this order.
func candidatePorts(first, last int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if first == 0 && last == 0 {
			for range keptPortTries {
				if !yield(firstKeptPort + rand.IntN(keptPorts)) {
					return
				}
			}
			return
		}
		for port := first; port <= last && yield(port); port++ {
		}
	}
}

const firstRetry, longestRetry = 200 * time.Millisecond, 5 * time.Second

// RetryDelay returns how long to wait before the next attempt to open a listener, after this number of earlier
// failures: exponential back-off with full jitter.
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

// ask returns the descriptor that came with the answer, or nil.
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
		err = &supervisorRefusal{answer.Error, answer.Reason}
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

// descriptors returns all descriptors of a message; the caller closes them.
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
